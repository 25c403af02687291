//! Who may ask, and how many at once.

use crate::answer::Refused;
use hyper::Request;
use hyper::body::Incoming;
use hyper::header::{HOST, HeaderName, ORIGIN};
use std::collections::VecDeque;
use std::fmt::Write;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::task::JoinHandle;

/// Connections that never showed the token; beyond, the oldest goes.
const STRANGERS: usize = 128;
/// Connections that did.
const FRIENDS: usize = 64;

/// Knows the address.
pub struct Gate {
    token: String,
    hosts: [String; 2],
    origins: [String; 2],
}

impl Gate {
    /// With a fresh token of 128 random bits.
    pub fn new(port: u16) -> io::Result<Self> {
        let mut bits = [0u8; 16];
        getrandom::fill(&mut bits).map_err(|e| io::Error::other(e.to_string()))?;
        let mut token = String::new();
        bits.iter().for_each(|b| {
            let _ = write!(token, "{b:02x}");
        });
        let hosts = ["127.0.0.1", "localhost"].map(|name| format!("{name}:{port}"));
        let origins = hosts.clone().map(|host| format!("http://{host}"));
        Ok(Gate { token, hosts, origins })
    }

    /// Where the page is.
    pub fn address(&self) -> String {
        format!("{}/{}/", self.origins[0], self.token)
    }

    /// What a path names behind the token.
    pub fn inside<'a>(&self, path: &'a str) -> Option<&'a str> {
        let (token, rest) = path.strip_prefix('/')?.split_once('/')?;
        same(token, &self.token).then_some(rest)
    }

    /// Errs unless the request names this host, comes from this page or from an address that was typed, and has the token.
    pub fn admits(&self, request: &Request<Incoming>) -> Result<(), Refused> {
        let stranger = |why: &str| Err(Refused { status: 403, why: why.into() });
        let headers = request.headers();
        let only = |name: HeaderName| {
            let mut all = headers.get_all(name).iter();
            (all.next().map(|v| v.as_bytes()), all.next().is_some())
        };
        let known = |of: &[String], found: &[u8]| of.iter().any(|known| known.as_bytes() == found);
        match only(HOST) {
            (Some(host), false) if known(&self.hosts, host) => {}
            _ => return stranger("this host is not served here"),
        }
        if request.uri().authority().is_some() {
            return stranger("this is no proxy");
        }
        match only(ORIGIN) {
            (None, _) => {}
            (Some(origin), false) if known(&self.origins, origin) => {}
            _ => return stranger("other sites are not answered"),
        }
        let site = headers.get("sec-fetch-site").map(|v| v.as_bytes());
        if !matches!(site, None | Some(b"same-origin" | b"none")) {
            return stranger("other sites are not answered");
        }
        match self.inside(request.uri().path()) {
            Some(_) => Ok(()),
            None => {
                stranger("open the address that `latentgp explore` printed: its token is missing or wrong")
            }
        }
    }
}

/// Whether two texts are equal, in a time that does not tell where they differ.
fn same(a: &str, b: &str) -> bool {
    a.len() == b.len() && a.bytes().zip(b.bytes()).fold(0, |all, (a, b)| all | (a ^ b)) == 0
}

/// The connections there are.
#[derive(Default)]
pub struct Admission(Mutex<Guests>);

#[derive(Default)]
struct Guests {
    next: u64,
    strangers: VecDeque<(u64, JoinHandle<()>)>,
    friends: VecDeque<(u64, JoinHandle<()>)>,
}

/// What a connection knows of itself.
#[derive(Clone)]
pub struct Ticket {
    id: u64,
    at: Arc<Admission>,
}

impl Admission {
    /// Lets a connection in; `start` runs it.
    pub fn admit(self: &Arc<Self>, start: impl FnOnce(Ticket) -> JoinHandle<()>) {
        let mut guests = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        guests.next += 1;
        let id = guests.next;
        let task = start(Ticket { id, at: Arc::clone(self) });
        guests.strangers.push_back((id, task));
        keep(&mut guests.strangers, STRANGERS);
    }
}

impl Ticket {
    /// The connection showed the token.
    pub fn trust(&self) {
        let mut guests = self.at.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(at) = guests.strangers.iter().position(|(id, _)| *id == self.id)
            && let Some(own) = guests.strangers.remove(at)
        {
            guests.friends.push_back(own);
            keep(&mut guests.friends, FRIENDS);
        }
    }
}

/// Forgets connections that ended, and drops the oldest of too many.
fn keep(tasks: &mut VecDeque<(u64, JoinHandle<()>)>, most: usize) {
    tasks.retain(|(_, task)| !task.is_finished());
    while tasks.len() > most {
        if let Some((_, oldest)) = tasks.pop_front() {
            oldest.abort();
        }
    }
}
