//! The one property, written once: the old state or the new one and never a third, and an exit status that
//! tells the truth about which.

use std::collections::BTreeMap;
use std::path::Path;

use lychgate::state::{Access, StateError, Store};
use serde_json::{Value, json};

use super::compare::{comparable, difference, equal, evidence, leftovers, lossy, outside, without_tokens};
use super::prep::Situation;
use super::world::{Bench, Call, Entry, Outcome};

/// Which of the two allowed states a root is in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    Old,
    New,
}

/// Everything the books say: every row whole, with its evidence, and every checkpoint.
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
            let rows = books.values().filter_map(|book| book.get("row").or_else(|| book.get("session")));
            let totals = rows.map(|row| row["history"]["total"].as_u64().unwrap());
            totals.sum::<u64>()
        };
        assert_eq!(total(&old.repeat_books), total(&new.books), "{name}: one effect is one effect");
        for reference in [old, new] {
            assert_eq!(leftovers(&reference.repeat_tree), Vec::<String>::new(), "{name}");
        }
        // An answer that allows something is given once.
        let given_once = match answered.code().as_str() {
            "admitted" => Some("already-admitted"),
            "granted" => Some("already-granted"),
            _ => None,
        };
        if let Some(again) = given_once {
            assert_eq!(new.repeat.code(), again, "{name}");
        } else {
            assert_eq!(new.repeat, *answered, "{name}: the first answer, byte for byte");
            assert_eq!(new.repeat_again, *answered, "{name}");
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

    /// Rule 15: a predecessor whose receipt cannot be read makes its successor unproven. So a rotation that could
    /// not look comes to a state of its own, rightly, and says so.
    pub fn is_unproven_for_want_of_sight(&self, bench: &Bench, outcome: &Outcome) -> bool {
        let Ok(books) = books(bench) else { return false };
        outcome.exit == Some(0)
            && outcome.code() == "rotated"
            && self.old.books.len() == books.len()
            && books.values().any(|row| {
                let row = &row["row"];
                row["taskAttemptUnproven"] == true
                    && row["attempt"]["receiptEligible"] == false
                    && row["attempt"]["reason"]
                        .as_str()
                        .is_some_and(|reason| reason.contains("is unreadable: "))
            })
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
        // A pass that left something alone for want of sight, and says so, did what it could.
        let left = outcome
            .answer()
            .is_some_and(|answer| answer["left"].as_array().is_some_and(|left| !left.is_empty()));
        if answered && left && outcome.exit == Some(0) {
            return if after == Side::Old { Ok(()) } else { lie("it says that it left it alone") };
        }
        match outcome.exit {
            None if answered && after == Side::Old => lie("it was answered before it was true"),
            None => Ok(()),
            exit if exit == self.answered.exit && answered => {
                if after == Side::Old {
                    return lie("it says that it was done");
                }
                equal("the answer", &outcome.stdout, &self.answered.stdout)?;
                equal("the caller's files", &outside(crashed), &self.outside)
            }
            Some(71) => Ok(()),
            // The alarm after a claim: its code says that the claim stands. A replacement is refused by it beforehand.
            Some(11) if outcome.code() == "report-after-settlement" && self.answered.code() == "claimed" => {
                match after {
                    Side::New => Ok(()),
                    Side::Old => lie("it says that the claim stands"),
                }
            }
            Some(10 | 11 | 64 | 65 | 74 | 75) if after == Side::Old => Ok(()),
            Some(10 | 11 | 64 | 65 | 74 | 75) => lie("it says that nothing was changed"),
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
    for entry in store.all_runs().map_err(failed)? {
        let document = entry.doc.map_err(failed)?;
        let whole = json!({ "revision": document.revision, "run": document.run });
        books.insert(entry.folder, whole);
    }
    for entry in store.all_sessions().map_err(failed)? {
        let document = entry.doc.map_err(failed)?;
        let whole = json!({ "revision": document.revision, "session": document.session });
        books.insert(entry.folder, whole);
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
