//! `latentgp explore`: what it refuses, the page as one file, and the line of the demo that opens it.

use crate::program::Folder;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::Stdio;

fn fitted() -> Folder {
    let folder = Folder::new();
    folder.write("oil.csv", &folder.ok("dataset oil-flow --n 40"));
    folder.ok("fit oil.csv --labels regime --latent-dim 2 --inducing 8 --max-iter 5 --quiet --out m.lgp");
    folder
}

#[test]
fn what_does_not_fit_is_refused() {
    let folder = fitted();
    folder.ok("regress oil.csv --exclude regime --target vertical1_oil --model sparse --inducing 5 --max-iter 3 --quiet --out r.lgp");
    folder.write("short.csv", "a\n1\n2\n");
    for (line, code, says) in [
        ("m.lgp --images 8x8", 2, "12 columns"),
        ("m.lgp --images 8", 2, "HEIGHTxWIDTH"),
        ("m.lgp --images 0x12", 2, "HEIGHTxWIDTH"),
        ("m.lgp --data short.csv", 3, "expected 40, found 2"),
        ("m.lgp --static page.svg", 2, ".html"),
        ("m.lgp --static m.lgp", 2, "html"),
        ("m.lgp --static page.html --port 80", 2, "cannot be used with"),
        ("m.lgp --port 99999", 2, "99999"),
        ("oil.csv", 3, "oil.csv"),
        ("none.lgp", 3, "none.lgp"),
        ("r.lgp --images 3x4", 2, "--images"),
        ("r.lgp --static page.html", 2, "latent space"),
    ] {
        let ended = folder.run(&format!("explore {line} --quiet"));
        assert_eq!(ended.code, code, "{line}: {ended:?}");
        assert!(ended.err.contains(says), "{line}: {}", ended.err);
        assert!(ended.out.is_empty() && !folder.path("page.html").exists());
    }
}

#[test]
fn one_file_has_everything() {
    let folder = fitted();
    let ended = folder.run("explore m.lgp --static page.html --title \"a </script> b\"");
    assert!(ended.code == 0 && ended.err.contains("page.html"), "{ended:?}");
    let page = folder.read("page.html");
    assert!(page.contains("<title>a &lt;/script&gt; b</title>") && page.contains("\"kind\":\"process\""));
    assert!(page.contains("script-src 'sha256-") && !page.contains("unsafe-") && !page.contains("src=\""));
    assert_eq!(page.matches("</script>").count(), 2);
    for away in ["http://", "https://"] {
        // The namespaces of SVG are names, not places.
        let asked = page.matches(away).count()
            - page.matches("http://www.w3.org/2000/svg").count() * usize::from(away == "http://");
        assert_eq!(asked, 0, "{away}");
    }
}

#[cfg(unix)]
#[test]
fn the_address_is_one_line_and_ends_with_the_program() {
    let folder = fitted();
    let mut child = folder
        .command("explore m.lgp --no-open --quiet")
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut out = BufReader::new(child.stdout.take().unwrap());
    let mut line = String::new();
    out.read_line(&mut line).unwrap();
    let (host, path) = line.trim().strip_prefix("http://").unwrap().split_once('/').unwrap();
    let mut stream = TcpStream::connect(host).unwrap();
    write!(stream, "GET /{path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 200 ") && answer.contains("<div id=\"app\">"), "{answer}");
    std::process::Command::new("kill").arg(child.id().to_string()).status().unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(0));
    let mut rest = String::new();
    out.read_to_string(&mut rest).unwrap();
    assert!(rest.is_empty(), "{rest}");
}
