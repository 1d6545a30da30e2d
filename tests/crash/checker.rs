//! The one property, written once: the old state or the new one and never a third, and an exit status that
//! tells the truth about which.

use std::collections::BTreeMap;
use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash as _, Hasher as _};
use std::path::Path;

use lychgate::state::{Access, StateError, Store};
use serde_json::{Value, json};

use super::situations::Situation;
use super::world::{Bench, Call, Entry, Outcome};

/// Which of the two allowed states a root is in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    Old,
    New,
}

/// Everything the books say: every row whole, with its evidence.
pub type Books = BTreeMap<String, Value>;

/// The clock of the call under test, of its repeats, and of the other calls.
const CALL: u32 = 3000;
const REPEAT: u32 = 3001;
const REPEAT_AGAIN: u32 = 3002;
const NEXT: u32 = 3003;

/// What undisturbed runs do from one of the two states.
#[derive(Debug)]
struct Reference {
    books: Books,
    inspected: Value,
    /// The evidence that counts.
    evidence: BTreeMap<String, Vec<u8>>,
    /// Somebody else's call.
    next: Outcome,
    next_books: Books,
    /// The same call again, with the same request id, at another time and with other ids.
    repeat: Outcome,
    repeat_books: Books,
    repeat_tree: Vec<Entry>,
    /// And once more.
    repeat_again: Outcome,
}

/// The checker of one situation: what undisturbed runs do from the old state and from the new one.
#[derive(Debug)]
pub struct Checker {
    pub call: Call,
    next: Call,
    answered: Outcome,
    /// The caller's own files after an undisturbed run.
    outside: BTreeMap<String, Vec<u8>>,
    old: Reference,
    new: Reference,
    /// The root is made by the call itself, so that its secret, and with it every token, differs from run to run.
    secret_differs: bool,
}

impl Checker {
    /// Makes the undisturbed runs, in the folder `dir`.
    pub fn new(situation: &Situation, dir: &Path) -> Self {
        let call = situation.call.at(CALL);
        let next = situation.next.at(NEXT);
        let secret_differs = !situation.bench.root().exists();
        let bench = Bench::copy_of(&situation.bench, dir.join("undisturbed"));
        let answered = without_tokens(bench.run(&call), secret_differs);
        let outside = outside(&bench);
        let reference = |from: &Bench| Reference::new(from, &call, &next, dir, secret_differs);
        let (old, new) = (reference(&situation.bench), reference(&bench));
        let checker = Self { call, next, answered, outside, old, new, secret_differs };
        checker.assert_references(situation.name);
        checker
    }

    /// The references themselves must be sane, or every comparison with them would be worth nothing.
    fn assert_references(&self, name: &str) {
        let Self { answered, old, new, .. } = self;
        assert!(matches!(answered.exit, Some(0 | 10)), "{name}: {answered:?}");
        assert!(!answered.code().is_empty(), "{name}: {answered:?}");
        assert_ne!(old.books, new.books, "{name} changes nothing");
        assert_eq!(new.books, new.repeat_books, "{name}: the repeat is a second effect");
        let total = |books: &Books| {
            let totals = books.values().map(|row| row["row"]["history"]["total"].as_u64().unwrap());
            totals.sum::<u64>()
        };
        assert_eq!(total(&old.repeat_books), total(&new.books), "{name}: one effect is one effect");
        for reference in [old, new] {
            assert_eq!(leftovers(&reference.repeat_tree), Vec::<String>::new(), "{name}");
        }
        let same = if answered.code() == "admitted" { "already-admitted" } else { "" };
        if answered.exit == Some(0) && same.is_empty() && !self.call.args.iter().any(|arg| arg == "recover") {
            assert_eq!(new.repeat.stdout, answered.stdout, "{name}: the first answer, byte for byte");
            assert_eq!(new.repeat_again.stdout, answered.stdout, "{name}");
        } else if !same.is_empty() {
            assert_eq!(new.repeat.code(), same, "{name}");
        }
    }

    /// What a run did, with what differs from run to run blanked.
    pub fn blanked(&self, outcome: Outcome) -> Outcome {
        without_tokens(outcome, self.secret_differs)
    }

    fn reference(&self, side: Side) -> &Reference {
        match side {
            Side::Old => &self.old,
            Side::New => &self.new,
        }
    }

    /// Looks at what a cut-short call has left: which state it is, whether readers and the next calls work, and
    /// whether the repeat converges to exactly one effect and leaves nothing over.
    pub fn examine(&self, crashed: &Bench, spare: &Path) -> Result<Side, String> {
        let side = self.side(crashed)?;
        let reference = self.reference(side);
        self.evidence_counts(crashed, side)?;
        let inspected = inspect(crashed)?;
        equal("inspect", &inspected, &reference.inspected)?;

        let other = Bench::copy_of(crashed, spare.join("next"));
        equal("the next call", &self.blanked(other.run(&self.next)), &reference.next)?;
        equal("the state after the next call", &books(&other)?, &reference.next_books)?;

        let again = Bench::copy_of(crashed, spare.join("again"));
        let repeat = self.blanked(again.run(&self.call.at(REPEAT)));
        equal(&format!("the repeat from the {side:?} state"), &repeat, &reference.repeat)?;
        equal("the state after the repeat", &books(&again)?, &reference.repeat_books)?;
        let tree = again.tree();
        equal("what is left over", &leftovers(&tree), &Vec::new())?;
        let tree = comparable(&tree, self.secret_differs);
        equal("the files after the repeat", &tree, &comparable(&reference.repeat_tree, self.secret_differs))?;

        let repeat = self.blanked(again.run(&self.call.at(REPEAT_AGAIN)));
        equal("the second repeat", &repeat, &reference.repeat_again)?;
        equal("the state after the second repeat", &books(&again)?, &reference.repeat_books)?;
        Ok(side)
    }

    fn side(&self, crashed: &Bench) -> Result<Side, String> {
        let books = books(crashed)?;
        if books == self.old.books {
            Ok(Side::Old)
        } else if books == self.new.books {
            Ok(Side::New)
        } else {
            let to_old = difference(&books, &self.old.books);
            let to_new = difference(&books, &self.new.books);
            Err(format!("a third state\nagainst the old one: {to_old}\nagainst the new one: {to_new}"))
        }
    }

    /// The evidence that counts is exactly the state's: what lies in its place, and what the record of a commit
    /// names that could not put everything in place.
    fn evidence_counts(&self, crashed: &Bench, side: Side) -> Result<(), String> {
        let (found, expected) = (evidence(crashed), &self.reference(side).evidence);
        if let Some(path) = found.keys().find(|path| !expected.contains_key(*path)) {
            return Err(format!("in the {side:?} state `{path}` does not belong"));
        }
        match expected.iter().find(|(path, bytes)| found.get(*path) != Some(*bytes)) {
            Some((path, _)) => Err(format!("in the {side:?} state `{path}` is missing or another one")),
            None => Ok(()),
        }
    }

    /// Whether the exit status, and the answer if one was printed, tell the truth. `before` is the state the
    /// call began in, `after` the one it left.
    pub fn truthful(
        &self,
        outcome: &Outcome,
        crashed: &Bench,
        before: Side,
        after: Side,
    ) -> Result<(), String> {
        let lie = |what: &str| Err(format!("{what}; the state is the {after:?} one: {outcome:?}"));
        if outcome.stderr.contains("panicked") {
            return lie("a panic");
        }
        if before == Side::New {
            return if after == Side::New { Ok(()) } else { lie("seen, and then gone") };
        }
        let answered = outcome.code() == self.answered.code();
        match outcome.exit {
            None if answered && after == Side::Old => lie("it was answered before it was true"),
            None => Ok(()),
            exit if exit == self.answered.exit && answered => {
                if after == Side::Old {
                    return lie("it says that it was done");
                }
                equal("the answer", &outcome.stdout, &self.answered.stdout)?;
                equal("the caller's files", &self::outside(crashed), &self.outside)
            }
            Some(71) => Ok(()),
            Some(10 | 64 | 65 | 74 | 75) if after == Side::Old => Ok(()),
            Some(10 | 64 | 65 | 74 | 75) => lie("it says that nothing was changed"),
            Some(_) => lie("an exit status that says nothing"),
        }
    }
}

impl Reference {
    fn new(from: &Bench, call: &Call, next: &Call, dir: &Path, secret_differs: bool) -> Self {
        let run = |bench: &Bench, call: &Call| without_tokens(bench.run(call), secret_differs);
        let other = Bench::copy_of(from, dir.join("reference"));
        let next = run(&other, next);
        let next_books = books(&other).unwrap();
        let again = Bench::copy_of(from, dir.join("reference"));
        let repeat = run(&again, &call.at(REPEAT));
        let repeat_books = books(&again).unwrap();
        let repeat_tree = again.tree();
        let repeat_again = run(&again, &call.at(REPEAT_AGAIN));
        assert_eq!(books(&again).unwrap(), repeat_books, "{repeat_again:?}");
        Self {
            books: books(from).unwrap(),
            inspected: inspect(from).unwrap(),
            evidence: evidence(from),
            next,
            next_books,
            repeat,
            repeat_books,
            repeat_tree,
            repeat_again,
        }
    }
}

/// Reads the books without a lock, as any reader would. A root that is not made yet has none.
pub fn books(bench: &Bench) -> Result<Books, String> {
    let failed = |error: StateError| {
        format!("the root cannot be read: {error} {:?}", std::error::Error::source(&error))
    };
    let store = match Store::open(&bench.root(), Access::Read) {
        Ok(store) => store,
        Err(StateError::NoRoot { .. }) => return Ok(Books::new()),
        Err(error) => return Err(failed(error)),
    };
    let mut books = Books::new();
    for entry in store.tasks().map_err(failed)? {
        let document = entry.doc.map_err(failed)?;
        let row = &document.row;
        let receipt =
            row.task_attempt_id.as_ref().map(|id| format!("{:?}", store.read_receipt(&document, id)));
        let report = row.counted_report().map(|report| {
            let mut text = Vec::new();
            let shown = store.show_report(&document, report, &mut text);
            format!("{shown:?} {}", lossy(&text))
        });
        let late: Vec<_> = store
            .late_reports(&document)?
            .iter()
            .map(|late| {
                let mut text = Vec::new();
                let shown = store.show_late(&document, late, &mut text);
                format!("{} {shown:?} {}", late.file, lossy(&text))
            })
            .collect();
        let archived = store.archives(row).map_err(failed)?;
        let whole = json!({
            "revision": document.revision, "row": row, "receipt": receipt, "report": report, "late": late,
            "archived": archived,
        });
        books.insert(row.task_id.to_string(), whole);
    }
    Ok(books)
}

/// What `inspect` says of every task, with its history and its evidence.
fn inspect(bench: &Bench) -> Result<Value, String> {
    let call = Call::new(&["inspect", "--history", "--explain", "--json"]).at(NEXT);
    let outcome = bench.run(&call);
    match outcome.answer() {
        Some(answer) if outcome.exit == Some(0) => Ok(answer["tasks"].clone()),
        _ => Err(format!("inspect: {outcome:?}")),
    }
}

fn is_temporary(name: &str) -> bool {
    name.starts_with(".lych-") || name.starts_with(".atomicwrite") || name.starts_with(".tmp")
}

/// Everything that a call which is over must not leave.
fn leftovers(tree: &[Entry]) -> Vec<String> {
    tree.iter().filter(|entry| is_temporary(entry.name())).map(|entry| entry.path.clone()).collect()
}

/// The evidence that counts.
fn evidence(bench: &Bench) -> BTreeMap<String, Vec<u8>> {
    let tree = bench.tree();
    let read =
        |path: &str| tree.iter().find(|entry| entry.path == path).and_then(|entry| entry.bytes.clone());
    let mut counts: BTreeMap<String, Vec<u8>> = tree
        .iter()
        .filter(|entry| entry.path.starts_with("root/sessions/") && !is_temporary(entry.name()))
        .filter_map(|entry| entry.bytes.clone().map(|bytes| (entry.path.clone(), bytes)))
        .collect();
    for row in tree.iter().filter(|entry| entry.name() == "row.json") {
        let file: Value =
            serde_json::from_slice(row.bytes.as_deref().unwrap_or_default()).unwrap_or_default();
        for named in file["document"]["pending"]["files"].as_array().into_iter().flatten() {
            let text = |field: &str| named[field].as_str().unwrap_or_default();
            let place = format!("root/{}", text("path"));
            let beside = Path::new(&place).with_file_name(text("staged")).display().to_string();
            if let Some(bytes) = read(&place).or_else(|| read(&beside)) {
                counts.insert(place, bytes);
            }
        }
    }
    counts
}

/// The caller's own files.
fn outside(bench: &Bench) -> BTreeMap<String, Vec<u8>> {
    let files = bench.tree().into_iter().filter(|entry| !entry.path.starts_with("root/"));
    let files = files.filter(|entry| !is_temporary(entry.name()));
    files.filter_map(|entry| entry.bytes.map(|bytes| (entry.path, bytes))).collect()
}

/// A tree as two runs can be compared by: rows by what they say, an empty folder of a task left out.
fn comparable(tree: &[Entry], secret_differs: bool) -> Vec<(String, u32, String)> {
    let has_content = |path: &str| tree.iter().any(|entry| entry.path.starts_with(&format!("{path}/")));
    let kept = tree.iter().filter(|entry| {
        entry.bytes.is_some() || !entry.path.starts_with("root/tasks/") || has_content(&entry.path)
    });
    kept.map(|entry| {
        let content = match &entry.bytes {
            None => String::new(),
            Some(_) if entry.path == "root/secret" && secret_differs => "[SECRET]".to_owned(),
            Some(bytes) if entry.name() == "row.json" => {
                let file: Value = serde_json::from_slice(bytes).unwrap_or_default();
                let document = &file["document"];
                format!("{} {}", document["revision"], document["body"])
            }
            Some(bytes) => lossy(bytes),
        };
        (entry.path.clone(), entry.mode, content)
    })
    .collect()
}

/// A number that is the same for two trees which differ in nothing but the random names of temporary files and
/// commits, the sums over them, and the secret.
pub fn fingerprint(bench: &Bench) -> u64 {
    let mut tree: Vec<(String, u32, Option<String>)> = bench
        .tree()
        .into_iter()
        .map(|entry| {
            let content = entry.bytes.map(|bytes| {
                if entry.path == "root/secret" || entry.path.starts_with("root/.lych-") {
                    return bytes.len().to_string();
                }
                let text = lossy(&bytes);
                match text.split_once("\"document\":") {
                    Some((_, document)) => without_random_names(document),
                    None => text,
                }
            });
            (without_random_names(&entry.path), entry.mode, content)
        })
        .collect();
    tree.sort();
    let mut hasher = DefaultHasher::new();
    tree.hash(&mut hasher);
    hasher.finish()
}

/// Blanks the names of temporary files and the ids of commits.
fn without_random_names(text: &str) -> String {
    let mut text = blank_after(text, ".lych-part-");
    for prefix in [".lych-none-", ".lych-token-", ".lych-", ".atomicwrite", "\"id\":\""] {
        text = blank_after(&text, prefix);
    }
    text
}

/// Blanks the letters and digits after every occurrence of a prefix; `part` and `none` are no random names.
fn blank_after(text: &str, prefix: &str) -> String {
    let mut parts = text.split(prefix);
    let mut out = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        out.push_str(prefix);
        let rest = part.trim_start_matches(|c: char| c.is_ascii_alphanumeric());
        if rest.starts_with('-') { out.push_str(part) } else { out.push_str(rest) }
    }
    out
}

fn without_tokens(mut outcome: Outcome, secret_differs: bool) -> Outcome {
    if secret_differs {
        outcome.stdout = blank_after(&outcome.stdout, "tok_");
    }
    outcome
}

fn lossy(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn equal<T: std::fmt::Debug + PartialEq>(what: &str, found: &T, expected: &T) -> Result<(), String> {
    if found == expected {
        return Ok(());
    }
    Err(format!("{what}: {}", difference(found, expected)))
}

/// Where the texts of two values begin to differ.
fn difference<T: std::fmt::Debug>(found: &T, expected: &T) -> String {
    let (found, expected) = (format!("{found:?}"), format!("{expected:?}"));
    let at = found.bytes().zip(expected.bytes()).take_while(|(a, b)| a == b).count();
    let cut = |text: &str| {
        let bytes = text.as_bytes();
        lossy(bytes.get(at.saturating_sub(160)..bytes.len().min(at + 400)).unwrap_or_default())
    };
    format!("found\n    ...{}\n  expected\n    ...{}", cut(&found), cut(&expected))
}
