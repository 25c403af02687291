//! The server on the loopback: who is answered, and that nobody else can stop it.
#![cfg(feature = "server")]

use latentgp::Mat;
use latentgp::file::{Labels, Report, TrainedSpace};
use latentgp::fit;
use latentgp::kernel::Rbf;
use latentgp::model::{LatentSpace, Training};
use latentgp::recipe::Recipe;
use latentgp_explore::{Explorer, Options, server};
use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

const MARKUP: &str = "<script>alert(1)</script>\u{7}";

fn space() -> Explorer {
    let y = Mat::from_fn(14, 3, |i, j| ((i * 3 + j * j) as f64).sin() + j as f64);
    let training = Training { latent_dim: 2, inducing: 5, max_iterations: 5, ..Training::default() };
    let fitted = training.fit(&y, &Rbf::new(2), &fit::go_on).unwrap();
    let report = Report::new(&fitted, &Recipe::of("bayesian-gplvm"), 0.1);
    let model: Box<dyn LatentSpace> = latentgp::model::BayesianSpace::from(fitted.model).boxed();
    let of = (0..14).map(|i| if i % 2 == 0 { MARKUP.into() } else { "b".into() }).collect();
    let columns = vec![MARKUP.to_string(), "b".into(), "c".into()];
    let labels = Some(Labels { name: "kind".into(), of });
    let trained = TrainedSpace { model, columns, labels, id: None, report, unfinished: None };
    Explorer::space(trained, Options { title: "test".into(), ..Options::default() }).unwrap()
}

/// A server that ends with the test.
struct Served {
    at: SocketAddr,
    token: String,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Served {
    fn new() -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let (tell, told) = mpsc::channel();
        let asked = Arc::clone(&stop);
        let thread = thread::spawn(move || {
            let ready = |address: &str| tell.send(address.to_string()).unwrap();
            server::serve(space(), 0, ready, || asked.load(Ordering::Relaxed)).unwrap();
        });
        let address = told.recv_timeout(Duration::from_secs(60)).unwrap();
        let (host, path) = address.strip_prefix("http://").unwrap().split_once('/').unwrap();
        let token = path.trim_end_matches('/').to_string();
        assert_eq!(token.len(), 32);
        Served { at: host.parse().unwrap(), token, stop, thread: Some(thread) }
    }

    fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(self.at).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(40))).unwrap();
        stream
    }

    /// Sends bytes as they are and reads to the end.
    fn raw(&self, bytes: &[u8]) -> String {
        let mut stream = self.connect();
        // A server that has refused already does not read on.
        let _ = stream.write_all(bytes);
        let mut all = Vec::new();
        let _ = stream.read_to_end(&mut all);
        String::from_utf8_lossy(&all).into_owned()
    }

    fn host(&self) -> String {
        self.at.to_string()
    }

    fn path(&self, name: &str) -> String {
        format!("/{}/{name}", self.token)
    }

    fn get(&self, path: &str, more: &str) -> String {
        self.raw(
            format!("GET {path} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n{more}\r\n", self.host())
                .as_bytes(),
        )
    }

    fn post(&self, path: &str, more: &str, body: &str) -> String {
        let head = format!(
            "POST {path} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\nContent-Length: {}\r\n{more}\r\n{body}",
            self.host(),
            body.len()
        );
        self.raw(head.as_bytes())
    }

    fn ask(&self, name: &str, body: &str) -> String {
        self.post(&self.path(&format!("api/{name}")), "Content-Type: application/json\r\n", body)
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        let ended = self.thread.take().unwrap().join();
        assert!(thread::panicking() || ended.is_ok());
    }
}

fn status(answer: &str) -> u16 {
    answer.split(' ').nth(1).and_then(|s| s.parse().ok()).unwrap_or_else(|| panic!("no status in {answer:?}"))
}

const FILES: [&str; 6] = ["", "index.html", "style.css", "main.js", "kernel.js", "space.js"];
const QUESTIONS: [&str; 8] = ["model", "positions", "column", "decode", "ground", "path", "rows", "place"];

/// Every answer has the policy, and what says what it is.
fn assert_guarded(answer: &str) {
    let head = answer.split("\r\n\r\n").next().unwrap().to_lowercase();
    for line in [
        "content-security-policy: default-src 'none'; script-src 'self'; style-src 'self';",
        "frame-ancestors 'none'",
        "x-content-type-options: nosniff",
        "referrer-policy: no-referrer",
        "cache-control: no-store",
        "cross-origin-resource-policy: same-origin",
    ] {
        assert!(head.contains(line), "{line} is not in\n{head}");
    }
    assert!(!head.contains("unsafe") && !head.contains("access-control"), "{head}");
}

#[test]
fn with_the_token_everything_is_answered() {
    let served = Served::new();
    for file in FILES {
        let answer = served.get(&served.path(file), "");
        assert_eq!(status(&answer), 200, "{file}");
        assert_guarded(&answer);
    }
    for (question, body) in [
        ("model", "{}"),
        ("positions", "{}"),
        ("column", r#"{"name":"outlier"}"#),
        ("column", r#"{"name":"data:b"}"#),
        ("decode", r#"{"x":[[0.1,0.2],[0,0]]}"#),
        ("ground", r#"{"dims":[0,1],"x":[-1,1],"y":[-1,1],"columns":8,"rows":8,"at":[0,0]}"#),
        ("path", r#"{"from":[-0.5,0],"to":[0.5,0.1]}"#),
        ("rows", r#"{"rows":[0,13]}"#),
    ] {
        let answer = served.ask(question, body);
        assert_eq!(status(&answer), 200, "{question}: {answer}");
        assert_guarded(&answer);
    }
    let csv = serde_json::json!({ "name": "n.csv", "text": format!("\"{MARKUP}\",b,c\n0.1,1.2,\n0.3,,2\n") });
    let answer = served.ask("place", &csv.to_string());
    assert_eq!(status(&answer), 200, "{answer}");
    assert!(answer.contains("\"given\":[[true,true,false],[true,false,true]]"), "{answer}");
    // Labels and names are JSON text: the page puts them in as text.
    assert!(served.ask("model", "{}").contains(r#"<script>alert(1)</script>\u0007"#));
}

#[test]
fn without_the_token_nothing_is() {
    let served = Served::new();
    let almost: String = {
        let last = if served.token.ends_with('0') { '1' } else { '0' };
        served.token[..31].chars().chain([last]).collect()
    };
    let upper = served.token.to_uppercase();
    let short = &served.token[..31];
    let routes = FILES.iter().map(|f| f.to_string()).chain(QUESTIONS.iter().map(|q| format!("api/{q}")));
    for route in routes {
        for token in ["", "/", &almost, short, &upper, "%00", "..", "*", &format!("x{}", served.token)] {
            if token == served.token {
                continue;
            }
            for answer in [
                served.get(&format!("/{token}/{route}"), ""),
                served.post(&format!("/{token}/{route}"), "Content-Type: application/json\r\n", "{}"),
            ] {
                assert_eq!(status(&answer), 403, "/{token}/{route}: {answer}");
                assert_guarded(&answer);
                assert!(!answer.contains(&served.token));
            }
        }
        assert_eq!(status(&served.get(&format!("/{route}"), "")), 403);
        assert_eq!(status(&served.get(&format!("/{}", served.token), "")), 403);
        let asked = format!("/{route}?token={0}&t={0}", served.token);
        assert_eq!(status(&served.get(&asked, &format!("Cookie: token={}\r\n", served.token))), 403);
    }
}

#[test]
fn hostile_hosts_and_origins_are_refused() {
    let served = Served::new();
    let port = served.at.port();
    let names = [
        "evil.example",
        "127.0.0.1.evil.example",
        "localhost.evil.example",
        "evil.example#127.0.0.1",
        "0.0.0.0",
        "[::1]",
        "127.1",
        "2130706433",
        "0x7f000001",
        "017700000001",
        "127.0.0.2",
        "127.0.0.1.",
        "localhost.",
        "LOCALHOST.evil",
        "[::ffff:127.0.0.1]",
        "127.0.0.1%00",
        "user@127.0.0.1",
        "127.0.0.1@evil.example",
        "xn--localhost",
        "local host",
        "null",
        "*",
        "",
        "127.0.0.1,evil.example",
        "192.168.0.1",
        "10.0.0.1",
        "localtest.me",
        "127.0.0.1.nip.io",
        "metadata.google.internal",
        "169.254.169.254",
    ];
    let path = served.path("api/model");
    let mut tried = 0;
    for name in names {
        let hosts = [format!("{name}:{port}"), format!("{name}:80")];
        for host in hosts {
            let head = format!(
                "POST {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\nContent-Length: 2\r\nContent-Type: application/json\r\n\r\n{{}}"
            );
            let answer = served.raw(head.as_bytes());
            assert!([400, 403].contains(&status(&answer)), "Host: {host}: {answer}");
            assert!(!answer.contains("\"columns\""));
            tried += 1;
        }
        for origin in [format!("http://{name}:{port}"), format!("https://{name}"), name.to_string()] {
            let answer =
                served.post(&path, &format!("Content-Type: application/json\r\nOrigin: {origin}\r\n"), "{}");
            assert!([400, 403].contains(&status(&answer)), "Origin: {origin}: {answer}");
            assert!(!answer.contains("\"columns\""));
            tried += 1;
        }
    }
    assert!(tried >= 60);
    for more in [
        "Origin: https://127.0.0.1\r\n",
        "Origin: file://\r\n",
        "Origin: null\r\n",
        "Sec-Fetch-Site: cross-site\r\n",
        "Sec-Fetch-Site: same-site\r\n",
        "Host: evil.example\r\n",
    ] {
        assert!([400, 403].contains(&status(&served.get(&served.path(""), more))), "{more}");
    }
    // No host at all, two of them, and a proxy's form of the address.
    let token = served.path("");
    for head in [
        format!("GET {token} HTTP/1.1\r\nConnection: close\r\n\r\n"),
        format!("GET {token} HTTP/1.0\r\n\r\n"),
        format!(
            "GET http://evil.example{token} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n\r\n",
            served.host()
        ),
        format!("CONNECT {} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n\r\n", served.host(), served.host()),
    ] {
        assert!([400, 403].contains(&status(&served.raw(head.as_bytes()))), "{head}");
    }
    for origin in [format!("http://127.0.0.1:{port}"), format!("http://localhost:{port}")] {
        let answer =
            served.post(&path, &format!("Content-Type: application/json\r\nOrigin: {origin}\r\n"), "{}");
        assert_eq!(status(&answer), 200);
    }
}

#[test]
fn paths_do_not_leave_the_page() {
    let served = Served::new();
    for path in [
        "../../../etc/passwd",
        "..%2f..%2fetc/passwd",
        "%2e%2e/%2e%2e/etc/passwd",
        "....//etc/passwd",
        "/etc/passwd",
        "..\\..\\windows\\win.ini",
        "api/../../etc/passwd",
        "index.html%00.js",
        "api/",
        "api/model/",
        "api/model/..",
        "./index.html",
        "INDEX.HTML",
        "style.css/",
        "web/style.css",
        "file:///etc/passwd",
        "api%2fmodel",
        ".git/config",
    ] {
        for answer in [served.get(&served.path(path), ""), served.ask(path, "{}")] {
            assert!([400, 403, 404, 405].contains(&status(&answer)), "{path}: {answer}");
            assert!(!answer.contains("root:"));
        }
    }
}

#[test]
fn other_methods_kinds_and_sizes_are_refused() {
    let served = Served::new();
    let (page, model) = (served.path(""), served.path("api/model"));
    assert_eq!(status(&served.get(&model, "")), 405);
    assert_eq!(status(&served.post(&page, "", "")), 405);
    for method in ["PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "NONSENSE"] {
        for path in [&page, &model] {
            let head =
                format!("{method} {path} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n\r\n", served.host());
            let answer = served.raw(head.as_bytes());
            assert_eq!(status(&answer), 405, "{method} {path}");
            assert_guarded(&answer);
        }
    }
    // What a form of another site could send.
    for kind in ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", ""] {
        let more = if kind.is_empty() { String::new() } else { format!("Content-Type: {kind}\r\n") };
        assert_eq!(status(&served.post(&model, &more, "{}")), 415, "{kind}");
    }
    // Told to be too large, and too large without telling.
    let told = format!(
        "POST {model} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n",
        served.host(),
        server::MOST_BYTES + 1
    );
    let answer = served.raw(told.as_bytes());
    assert_eq!(status(&answer), 413);
    assert_guarded(&answer);
    let mut chunked = format!(
        "POST {model} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n",
        served.host()
    )
    .into_bytes();
    let block = vec![b' '; 1 << 20];
    for _ in 0..10 {
        chunked.extend(format!("{:x}\r\n", block.len()).bytes());
        chunked.extend(&block);
        chunked.extend(b"\r\n");
    }
    let answer = served.raw(&chunked);
    assert!(answer.is_empty() || status(&answer) == 413, "{answer}");
    assert_eq!(status(&served.get(&page, &format!("X: {}\r\n", "a".repeat(64 << 10)))), 431);
    assert_eq!(status(&served.ask("model", "{}")), 200);
}

#[test]
fn malformed_questions_are_refused_in_words() {
    let served = Served::new();
    for (name, body) in [
        ("decode", ""),
        ("decode", "{"),
        ("decode", "null"),
        ("decode", "[]"),
        ("decode", "{}"),
        ("decode", r#"{"x":[]}"#),
        ("decode", r#"{"x":[[1]]}"#),
        ("decode", r#"{"x":[[1,2,3]]}"#),
        ("decode", r#"{"x":[["a","b"]]}"#),
        ("decode", r#"{"x":[[1e999,0]]}"#),
        ("decode", r#"{"x":[[NaN,0]]}"#),
        ("decode", r#"{"x":[[0,0]],"more":1}"#),
        ("decode", "\u{0}\u{1}"),
        ("ground", r#"{"dims":[0,9],"x":[0,1],"y":[0,1],"columns":8,"rows":8,"at":[0,0]}"#),
        ("ground", r#"{"dims":[0,1],"x":[0,1],"y":[0,1],"columns":100000,"rows":100000,"at":[0,0]}"#),
        ("ground", r#"{"dims":[0,1],"x":[0,1],"y":[0,1],"columns":1,"rows":0,"at":[0,0]}"#),
        ("ground", r#"{"dims":[-1,1],"x":[0,1],"y":[0,1],"columns":8,"rows":8,"at":[0,0]}"#),
        ("rows", r#"{"rows":[14]}"#),
        ("rows", r#"{"rows":[-1]}"#),
        ("rows", r#"{"rows":[99999999999999999999]}"#),
        ("column", r#"{"name":"nonsense"}"#),
        ("column", r#"{"name":"data:nonsense"}"#),
        ("path", r#"{"from":[0],"to":[0,0]}"#),
        ("place", r#"{"name":"a","text":""}"#),
        ("place", r#"{"name":"a","text":"x,y\n1,2\n"}"#),
    ] {
        let answer = served.ask(name, body);
        assert_eq!(status(&answer), 400, "{name} {body}: {answer}");
        assert!(answer.contains("\"error\":\""), "{answer}");
        assert_guarded(&answer);
    }
    let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    assert_eq!(status(&served.ask("decode", &deep)), 400);
    assert_eq!(status(&served.ask("nonsense", "{}")), 404);
    let many = format!("{{\"x\":[{}]}}", vec!["[0,0]"; 5000].join(","));
    assert_eq!(status(&served.ask("decode", &many)), 400);
    for garbage in ["\r\n\r\n", "GET\r\n\r\n", "\u{16}\u{3}\u{1}\u{2}\u{0}", "GET / HTTP/9.9\r\n\r\n"] {
        let _ = served.raw(garbage.as_bytes());
    }
    assert_eq!(status(&served.ask("model", "{}")), 200);
}

#[test]
fn slow_clients_are_dropped_and_others_do_not_wait() {
    let served = Served::new();
    let path = served.path("api/decode");
    let mut slow: Vec<TcpStream> = (0..20)
        .map(|k| {
            let mut stream = served.connect();
            let head = match k % 3 {
                0 => String::new(),
                1 => format!("GET {} HTTP/1.1\r\nHost: ", served.path("")),
                _ => format!(
                    "POST {path} HTTP/1.1\r\nHost: {}\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{{",
                    served.host()
                ),
            };
            stream.write_all(head.as_bytes()).unwrap();
            stream
        })
        .collect();
    assert_eq!(status(&served.ask("model", "{}")), 200, "others wait for slow clients");
    for stream in &mut slow {
        let mut all = Vec::new();
        let ended = stream.read_to_end(&mut all).map_err(|e| e.kind());
        let waits = [Err(ErrorKind::WouldBlock), Err(ErrorKind::TimedOut)];
        assert!(!waits.contains(&ended), "a slow client is not dropped");
    }
}

#[test]
fn a_thousand_connections_do_not_stop_it() {
    let served = Served::new();
    let mut all = Vec::new();
    for k in 0..1000 {
        // Those that the machine itself does not allow prove nothing.
        let Ok(stream) = TcpStream::connect(served.at) else { break };
        all.push(stream);
        if k % 250 == 249 {
            assert_eq!(status(&served.ask("decode", r#"{"x":[[0,0]]}"#)), 200, "with {k} connections");
        }
        // Old ones are kept open by this side while the files of a process allow it.
        if all.len() > 400 {
            all.drain(..100);
        }
    }
    assert_eq!(status(&served.ask("model", "{}")), 200);
    let workers: Vec<_> = (0..16)
        .map(|_| {
            let (host, path) = (served.at, served.path("api/decode"));
            thread::spawn(move || {
                let body = r#"{"x":[[0.1,0.2]]}"#;
                let mut stream = TcpStream::connect(host).unwrap();
                let head = format!(
                    "POST {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
                    body.len()
                );
                stream.write_all(head.as_bytes()).unwrap();
                let mut all = String::new();
                stream.read_to_string(&mut all).unwrap();
                status(&all)
            })
        })
        .collect();
    assert!(workers.into_iter().all(|w| w.join().unwrap() == 200));
}
