//! The page on the loopback, for who has the address.
//!
//! ```text
//! connection ──Host, Origin──▶ token in the path ──▶ file of the page, or api/NAME ──▶ a worker thread
//! ```
//!
//! The address has a random token; without it nothing is answered, and neither is a request that names another host or comes
//! from another site. Every answer has a policy that lets the page load only what stands beside it. A client that is
//! slow to ask is dropped, and of too many connections the oldest: those that never had the token first.

mod guard;

use crate::Explorer;
use crate::answer::{Refused, Reply};
use crate::assets::asset;
use guard::{Admission, Gate};
use http_body_util::{BodyExt, Full, LengthLimitError, Limited};
use hyper::body::{Bytes, Incoming};
use hyper::header::{CONTENT_TYPE, HeaderName, HeaderValue};
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use std::convert::Infallible;
use std::io;
use std::net::Ipv4Addr;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::sync::Semaphore;

/// The largest body that is read.
pub const MOST_BYTES: usize = 8 << 20;
/// How long a client may take to send the head of a request, and how long a connection waits for the next.
const HEAD_TIME: Duration = Duration::from_secs(10);
/// How long a client may take to send a body.
const BODY_TIME: Duration = Duration::from_secs(20);
/// Questions that are worked on at the same time; others wait.
const WORKERS: usize = 2;
/// How often it is asked whether to stop.
const LOOK: Duration = Duration::from_millis(100);

/// What goes with every answer.
const HEADERS: [(&str, &str); 8] = [
    (
        "content-security-policy",
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob: data:; connect-src 'self'; \
         base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    ),
    ("x-content-type-options", "nosniff"),
    ("x-frame-options", "DENY"),
    ("referrer-policy", "no-referrer"),
    ("cross-origin-opener-policy", "same-origin"),
    ("cross-origin-resource-policy", "same-origin"),
    ("permissions-policy", "camera=(), geolocation=(), microphone=()"),
    ("cache-control", "no-store"),
];

/// A page that is being served.
struct Serving {
    explorer: Explorer,
    gate: Gate,
    workers: Arc<Semaphore>,
}

/// Serves until `stop` says so. `ready` gets the address, with its token, once it answers; port 0 is any that is free.
///
/// Errs when the port cannot be had.
pub fn serve(
    explorer: Explorer,
    port: u16,
    ready: impl FnOnce(&str),
    stop: impl Fn() -> bool,
) -> io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let served = runtime.block_on(async {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).await?;
        let gate = Gate::new(listener.local_addr()?.port())?;
        ready(&gate.address());
        let serving = Arc::new(Serving { explorer, gate, workers: Arc::new(Semaphore::new(WORKERS)) });
        let admission = Arc::new(Admission::default());
        while !stop() {
            let Ok(accepted) = tokio::time::timeout(LOOK, listener.accept()).await else { continue };
            // Too many open files: those of others close in time.
            let Ok((stream, _)) = accepted else {
                tokio::time::sleep(LOOK).await;
                continue;
            };
            let _ = stream.set_nodelay(true);
            let serving = Arc::clone(&serving);
            admission.admit(|ticket| {
                let service = service_fn(move |request| {
                    let (serving, ticket) = (Arc::clone(&serving), ticket.clone());
                    async move {
                        let trusted = serving.gate.admits(&request);
                        if trusted.is_ok() {
                            ticket.trust();
                        }
                        let answered = match trusted {
                            Ok(()) => serving.answer(request).await,
                            Err(refused) => Err(refused),
                        };
                        Ok::<_, Infallible>(response(answered))
                    }
                });
                tokio::spawn(async move {
                    let mut http = hyper::server::conn::http1::Builder::new();
                    http.timer(TokioTimer::new()).header_read_timeout(HEAD_TIME).max_buf_size(32 << 10);
                    // A client that breaks off is no concern of the others.
                    let _ = http.serve_connection(TokioIo::new(stream), service).await;
                })
            });
        }
        Ok(())
    });
    // Answers that nobody waits for any more do not keep the program.
    runtime.shutdown_background();
    served
}

impl Serving {
    async fn answer(self: &Arc<Self>, request: Request<Incoming>) -> Result<Reply, Refused> {
        let path = self.gate.inside(request.uri().path()).unwrap_or_default().to_string();
        match path.strip_prefix("api/") {
            None => file(request.method(), &path),
            Some(name) => {
                if request.method() != Method::POST {
                    return Err(refused(StatusCode::METHOD_NOT_ALLOWED, "expected a POST"));
                }
                let json = |v: &HeaderValue| v.as_bytes() == b"application/json";
                if !request.headers().get(CONTENT_TYPE).is_some_and(json) {
                    return Err(refused(StatusCode::UNSUPPORTED_MEDIA_TYPE, "expected application/json"));
                }
                let body = body(request).await?;
                // The work keeps its place also when the client is gone before it is done.
                let place = Arc::clone(&self.workers).acquire_owned().await;
                let (serving, name) = (Arc::clone(self), name.to_string());
                let work = tokio::task::spawn_blocking(move || {
                    let _place = place;
                    serving.explorer.answer(&name, &body)
                });
                work.await.unwrap_or_else(|_| {
                    Err(refused(StatusCode::INTERNAL_SERVER_ERROR, "the answer could not be worked out"))
                })
            }
        }
    }
}

fn file(method: &Method, path: &str) -> Result<Reply, Refused> {
    let name = if path.is_empty() { "index.html" } else { path };
    let found = asset(name).ok_or_else(|| Refused::unknown("such file"))?;
    match method {
        &Method::GET | &Method::HEAD => Ok(Reply { kind: kind(name), body: found.text.as_bytes().to_vec() }),
        _ => Err(refused(StatusCode::METHOD_NOT_ALLOWED, "expected a GET")),
    }
}

fn kind(name: &str) -> &'static str {
    match name.rsplit('.').next() {
        Some("html") => "text/html; charset=utf-8",
        Some("css") => "text/css; charset=utf-8",
        _ => "text/javascript; charset=utf-8",
    }
}

async fn body(request: Request<Incoming>) -> Result<Bytes, Refused> {
    let too_large = || refused(StatusCode::PAYLOAD_TOO_LARGE, "the body is larger than 8 MiB");
    let told = |v: &HeaderValue| v.to_str().ok().and_then(|v| v.parse::<u64>().ok());
    let length = request.headers().get(hyper::header::CONTENT_LENGTH).and_then(told);
    if length.is_some_and(|bytes| bytes > MOST_BYTES as u64) {
        return Err(too_large());
    }
    let all = Limited::new(request.into_body(), MOST_BYTES).collect();
    match tokio::time::timeout(BODY_TIME, all).await {
        Ok(Ok(all)) => Ok(all.to_bytes()),
        Ok(Err(e)) if e.is::<LengthLimitError>() => Err(too_large()),
        Ok(Err(_)) => Err(refused(StatusCode::BAD_REQUEST, "the body broke off")),
        Err(_) => Err(refused(StatusCode::REQUEST_TIMEOUT, "the body took too long")),
    }
}

fn refused(status: StatusCode, why: &str) -> Refused {
    Refused { status: status.as_u16(), why: why.into() }
}

fn response(answered: Result<Reply, Refused>) -> Response<Full<Bytes>> {
    let (status, reply) = match answered {
        Ok(reply) => (200, reply),
        Err(Refused { status, why }) => (status, Reply::json(&serde_json::json!({ "error": why }))),
    };
    let mut response = Response::new(Full::new(Bytes::from(reply.body)));
    *response.status_mut() = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(reply.kind));
    for (name, value) in HEADERS {
        headers.insert(HeaderName::from_static(name), HeaderValue::from_static(value));
    }
    response
}
