//! The pages of the guide: README.md and docs/, with their code blocks, links and pictures.

use std::fs;
use std::path::{Path, PathBuf};

/// Languages that a code block may have.
const LANGUAGES: [&str; 5] = ["sh", "python", "rust", "text", "json"];

/// A Markdown page.
pub struct Page {
    /// Its path from the root of the repository.
    pub name: String,
    /// Its folder.
    pub folder: PathBuf,
    /// Its code blocks, in order.
    pub blocks: Vec<Block>,
    /// The targets of its links and pictures, with their lines.
    pub links: Vec<(usize, String)>,
}

/// A code block.
pub struct Block {
    /// The line of its opening fence, from 1.
    pub line: usize,
    /// The first word of the fence.
    pub language: String,
    /// Why tests do not run it, where the fence says `notest: reason`.
    pub skipped: Option<String>,
    /// What is inside.
    pub code: String,
}

/// The root of the repository.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().expect("the workspace of this crate")
}

/// README.md and every page of docs/, in the order of their names.
pub fn pages() -> Vec<Page> {
    let mut paths = vec![root().join("README.md")];
    let docs = fs::read_dir(root().join("docs")).expect("docs/ is in the repository");
    paths.extend(
        docs.map(|entry| entry.unwrap().path()).filter(|path| path.extension().is_some_and(|e| e == "md")),
    );
    paths.sort();
    paths.iter().map(|path| Page::read(path)).collect()
}

impl Page {
    fn read(path: &Path) -> Page {
        let name = path.strip_prefix(root()).unwrap().display().to_string();
        let text = fs::read_to_string(path).unwrap_or_else(|e| panic!("{name}: {e}"));
        Page::parse(name, path.parent().unwrap(), &text)
    }

    /// The page of a text.
    pub fn parse(name: String, folder: &Path, text: &str) -> Page {
        let mut page = Page { name, folder: folder.to_path_buf(), blocks: Vec::new(), links: Vec::new() };
        let mut open: Option<Block> = None;
        for (i, line) in text.lines().enumerate() {
            let fence = line.trim_start().strip_prefix("```");
            match (&mut open, fence) {
                (None, Some(info)) => open = Some(Block::new(&page.name, i + 1, info)),
                (None, None) => page.links.extend(links(line).map(|link| (i + 1, link))),
                (Some(_), Some(_)) => page.blocks.extend(open.take()),
                (Some(block), None) => {
                    block.code.push_str(line);
                    block.code.push('\n');
                }
            }
        }
        assert!(open.is_none(), "{}: the last code block is not closed", page.name);
        page
    }

    /// The blocks of one language.
    pub fn blocks_in<'a>(&'a self, language: &'a str) -> impl Iterator<Item = &'a Block> {
        self.blocks.iter().filter(move |block| block.language == language)
    }

    /// The file names of its pictures in `docs/figures/guide` with this extension.
    pub fn guide_pictures(&self, extension: &str) -> Vec<String> {
        let of = |link: &String| {
            let name = link.split_once("figures/guide/")?.1;
            name.ends_with(extension).then(|| name.to_string())
        };
        self.links.iter().filter_map(|(_, link)| of(link)).collect()
    }
}

impl Block {
    fn new(page: &str, line: usize, info: &str) -> Block {
        let (language, rest) = info.trim().split_once(' ').unwrap_or((info.trim(), ""));
        assert!(
            LANGUAGES.contains(&language),
            "{page}:{line}: a block in `{language}`, not in {LANGUAGES:?}"
        );
        let skipped = match rest.strip_prefix("notest") {
            None => None,
            Some(reason) => {
                let reason = reason.trim_start_matches(':').trim();
                assert!(!reason.is_empty(), "{page}:{line}: `notest` needs a reason: `notest: installs it`");
                Some(reason.to_string())
            }
        };
        Block { line, language: language.to_string(), skipped, code: String::new() }
    }
}

/// The targets of `[…](target)` in a line, without code in backticks.
fn links(line: &str) -> impl Iterator<Item = String> {
    let text: String = line.split('`').step_by(2).collect();
    let after: Vec<String> = text.split("](").skip(1).map(str::to_string).collect();
    after.into_iter().filter_map(|rest| rest.split_once(')').map(|(target, _)| target.to_string()))
}
