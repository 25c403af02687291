//! The guide holds what it shows: shell blocks run, links lead somewhere, and every page is in the index.
//!
//! Python blocks run in `python/tests/test_docs.py`, Rust blocks as doctests of the library. With
//! `LATENTGP_FIGURES=write` the pictures that the blocks draw replace those of `docs/figures/guide`.

#![cfg(unix)]

mod pages;

use pages::{Block, Page, pages, root};
use std::env;
use std::fs;
use std::path::Path;
use std::process::Command;

/// What a page came to.
#[derive(Default)]
struct Outcome {
    ran: usize,
    skipped: usize,
    failures: Vec<String>,
}

#[test]
fn every_shell_block_runs() {
    let mut all = Outcome::default();
    for page in pages() {
        let one = run(&page);
        all.ran += one.ran;
        all.skipped += one.skipped;
        all.failures.extend(one.failures);
    }
    println!("{} shell blocks ran, {} were skipped", all.ran, all.skipped);
    assert!(all.failures.is_empty(), "{}", all.failures.join("\n\n"));
    assert!(all.ran > 0, "no page has a shell block that runs");
}

fn page(text: &str) -> Page {
    Page::parse("page.md".into(), Path::new("."), text)
}

#[test]
fn a_block_that_fails_is_named_by_page_and_line() {
    let outcome = run(&page("# Page\n\n```sh\necho 1 > a\n```\n\n```sh\ncat a\ncat b | cat\n```\n"));
    assert_eq!((outcome.ran, outcome.failures.len()), (2, 1));
    assert!(outcome.failures[0].starts_with("page.md:7: "), "{}", outcome.failures[0]);
}

#[test]
fn a_block_with_a_reason_is_skipped() {
    let outcome = run(&page("```sh notest: installs it\nfalse\n```\n"));
    assert_eq!((outcome.ran, outcome.skipped, outcome.failures.len()), (0, 1, 0));
}

#[test]
#[should_panic(expected = "needs a reason")]
fn a_block_without_a_reason_is_not() {
    page("```sh notest\nfalse\n```\n");
}

#[test]
fn a_picture_that_no_block_draws_is_named() {
    let outcome = run(&page("![A map](figures/guide/map.svg)\n"));
    assert_eq!(outcome.failures, ["page.md: no block draws map.svg"]);
}

/// Runs the blocks of a page in one fresh folder, up to the first that fails.
fn run(page: &Page) -> Outcome {
    let folder = tempfile::tempdir().unwrap();
    let mut outcome = Outcome::default();
    for block in page.blocks_in("sh") {
        if let Some(reason) = &block.skipped {
            println!("{}:{}: skipped, {reason}", page.name, block.line);
            outcome.skipped += 1;
            continue;
        }
        outcome.ran += 1;
        if let Err(failure) = shell(page, block, folder.path()) {
            outcome.failures.push(failure);
            return outcome;
        }
    }
    outcome.failures.extend(missing_pictures(page, folder.path()));
    outcome
}

fn shell(page: &Page, block: &Block, folder: &Path) -> Result<(), String> {
    let program = Path::new(env!("CARGO_BIN_EXE_latentgp")).parent().unwrap();
    let path = env::join_paths(
        std::iter::once(program.to_path_buf())
            .chain(env::split_paths(&env::var_os("PATH").unwrap_or_default())),
    );
    let done = Command::new("bash")
        .args(["-euo", "pipefail", "-c", &block.code])
        .current_dir(folder)
        .env("PATH", path.unwrap())
        .output()
        .unwrap_or_else(|e| panic!("bash: {e}"));
    match done.status.success() {
        true => Ok(()),
        false => {
            let err = String::from_utf8_lossy(&done.stderr);
            Err(format!("{}:{}: {}\n{}{err}", page.name, block.line, done.status, block.code))
        }
    }
}

/// Pictures of the page that its blocks should have drawn; copies those that are there where it is asked for.
fn missing_pictures(page: &Page, folder: &Path) -> Vec<String> {
    let mut missing = Vec::new();
    for name in page.guide_pictures(".svg") {
        let drawn = folder.join(&name);
        match (drawn.exists(), env::var_os("LATENTGP_FIGURES").is_some()) {
            (false, _) => missing.push(format!("{}: no block draws {name}", page.name)),
            (true, true) => drop(fs::copy(drawn, root().join("docs/figures/guide").join(&name)).unwrap()),
            (true, false) => {}
        }
    }
    missing
}

#[test]
fn every_link_leads_to_a_file() {
    for page in pages() {
        for (line, link) in &page.links {
            let file = link.split('#').next().unwrap();
            if !link.contains("://") && !file.is_empty() {
                assert!(page.folder.join(file).exists(), "{}:{line}: {link} is not there", page.name);
            }
        }
    }
}

#[test]
fn every_page_is_in_the_index() {
    let pages = pages();
    let index = pages.iter().find(|page| page.name == "docs/README.md").expect("docs/README.md");
    for page in pages.iter().filter(|page| page.name.starts_with("docs/") && page.name != index.name) {
        let name = page.name.trim_start_matches("docs/");
        assert!(index.links.iter().any(|(_, link)| link == name), "docs/README.md does not list {name}");
    }
}

#[test]
fn every_page_with_rust_is_a_doctest() {
    let guide = fs::read_to_string(root().join("crates/latentgp/src/guide.rs")).unwrap();
    for page in pages().iter().filter(|page| page.blocks_in("rust").next().is_some()) {
        assert!(guide.contains(&format!("\"{}\"", page.name)), "guide.rs does not name {}", page.name);
    }
}

#[test]
fn every_picture_of_the_guide_is_on_a_page() {
    let pages = pages();
    for entry in fs::read_dir(root().join("docs/figures/guide")).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        let shown = |page: &Page| page.links.iter().any(|(_, link)| link.ends_with(&format!("guide/{name}")));
        assert!(pages.iter().any(shown), "docs/figures/guide/{name} is on no page");
    }
}
