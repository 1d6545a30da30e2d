//! The continuation guard from outside: one file a part, one test a story.

mod args;
mod claims;
mod end_turn;
mod inputs;
mod inspect;
mod lifecycle;
mod prompts;
mod queues;
mod refusals;
mod repeats;
mod texts;
mod tickets;
mod todo;

use serde_json::Value;

use crate::common::{Outcome, TestRoot};

/// A session on its way.
pub struct Session<'a> {
    pub root: &'a TestRoot,
    pub id: &'static str,
}

impl<'a> Session<'a> {
    /// Opens a session that the guard may continue.
    pub fn open(root: &'a TestRoot, id: &'static str) -> Self {
        let session = Self { root, id };
        let _ = session.session("open", &["--guard"]).is(0, "opened");
        session
    }

    /// The same with a running prompt and a to-do list that has something unfinished: what the guard is for.
    pub fn at_work(root: &'a TestRoot, id: &'static str) -> (Self, String) {
        let session = Self::open(root, id);
        let prompt = session.submit("p1").get("promptId");
        let _ = session.todo(&["pending"]).is(0, "todo-counted");
        (session, prompt)
    }

    /// A command whose first argument is the session.
    pub fn call(&self, command: &str, more: &[&str]) -> Outcome {
        self.root.json(&[&[command, self.id], more].concat())
    }

    /// The same with something on standard input.
    pub fn tell(&self, command: &str, more: &[&str], stdin: &str) -> Outcome {
        self.root.json_with_stdin(&[&[command, self.id], more].concat(), stdin.as_bytes())
    }

    pub fn session(&self, act: &str, more: &[&str]) -> Outcome {
        self.root.json(&[&["session", act, self.id], more].concat())
    }

    pub fn prompt(&self, act: &str, more: &[&str]) -> Outcome {
        self.root.json(&[&["prompt", act, self.id], more].concat())
    }

    pub fn submit(&self, alias: &str) -> Outcome {
        self.prompt("submit", &["--alias", alias]).is(0, "submitted")
    }

    pub fn finish(&self, prompt: &str, end: &str) -> Outcome {
        self.prompt("finish", &[prompt, "--as", end])
    }

    pub fn claim(&self, prompt: &str) -> Outcome {
        self.call("claim", &["--prompt", prompt])
    }

    /// A granted claim's ticket.
    pub fn ticket(&self, prompt: &str) -> String {
        self.claim(prompt).is(0, "granted").get("ticket")
    }

    pub fn end(&self, ticket: &str, end: &str) -> Outcome {
        self.call("claim", &["--ticket", ticket, "--as", end])
    }

    pub fn say(&self, id: &str, text: &str) -> Outcome {
        self.tell("say", &["--id", id], text)
    }

    /// The main agent's list, with these states.
    pub fn todo(&self, states: &[&str]) -> Outcome {
        self.tell("todo", &[], &todo_list(states))
    }

    /// Its file.
    pub fn file(&self) -> std::path::PathBuf {
        let letter = |byte: u8| match byte {
            b'-' | b'_' | b'.' => char::from(byte).to_string(),
            _ if byte.is_ascii_alphanumeric() => char::from(byte).to_string(),
            _ => format!("%{byte:02X}"),
        };
        let folder: String = self.id.bytes().map(letter).collect();
        self.root.path().join("sessions").join(folder).join("guard/session.json")
    }

    /// What lies on disk.
    pub fn record(&self) -> Value {
        let path = self.file();
        let text = std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let file: Value = serde_json::from_slice(&text).unwrap();
        file["document"]["body"].clone()
    }

    /// The record without what every call leaves in it: its request, its time, its place in the history.
    pub fn meaning(&self) -> Value {
        let mut record = self.record();
        for noise in ["requests", "history", "updatedAt", "seq"] {
            record.as_object_mut().unwrap().shift_remove(noise);
        }
        record
    }

    /// Changes the record by hand, with its checksum right.
    pub fn rewrite(&self, change: impl FnOnce(&mut Value)) {
        use sha2::Digest as _;
        let path = self.file();
        let mut file: Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
        change(&mut file["document"]["body"]);
        let document = file["document"].to_string();
        let digest: Vec<String> =
            sha2::Sha256::digest(document.as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect();
        let digest = digest.concat();
        std::fs::write(path, format!("{{\"sha256\":\"{digest}\",\"document\":{document}}}\n")).unwrap();
    }

    /// Why the chain is suspended; empty if it is not.
    pub fn cause(&self) -> String {
        self.record()["chain"]["suspended"]["cause"].as_str().unwrap_or_default().to_owned()
    }

    pub fn attempts(&self) -> u64 {
        self.record()["chain"]["attempts"].as_u64().unwrap()
    }
}

/// A strict envelope with items of these states.
pub fn todo_list(states: &[&str]) -> String {
    let items = states.iter().enumerate().map(|(index, state)| {
        serde_json::json!({ "id": format!("item-{index}"), "content": "a secret plan", "status": state })
    });
    serde_json::json!({ "kind": "todo_list", "todos": items.collect::<Vec<_>>() }).to_string()
}

/// An answer without what differs from call to call, as one line.
pub fn told(outcome: &Outcome) -> String {
    let mut json = outcome.json();
    for noise in ["root", "requestId"] {
        json.as_object_mut().unwrap().shift_remove(noise);
    }
    format!("{} {json}", outcome.exit)
}
