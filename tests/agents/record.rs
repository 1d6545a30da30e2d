//! The payloads in `tests/payloads/driven`, which the driver of `replay` sends: what the real agents send,
//! without what differs from run to run.
//!
//! Each watched run says that its payloads still have the fields of the recorded ones. A new version of an agent is
//! recorded by running these tests with `LYCHGATE_UPDATE_PAYLOADS=1`.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value};

use crate::stage::Stage;

/// Compares what the hooks of a stage were told with the recording of this name, or replaces it.
#[track_caller]
pub(crate) fn holds(stage: &Stage, name: &str) {
    let file = format!("tests/payloads/driven/{}-{name}.jsonl", stage.agent.name());
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(&file);
    let mut cleaner = Cleaner::of(stage);
    let seen: Vec<Value> = stage.seen().into_iter().map(|seen| cleaner.clean(seen.payload)).collect();
    if std::env::var_os("LYCHGATE_UPDATE_PAYLOADS").is_some() {
        let text = seen.iter().map(Value::to_string).collect::<Vec<_>>().join("\n") + "\n";
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, text).unwrap();
    }
    let recorded = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{file}: {error}"));
    let recorded: Vec<Value> = recorded.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let (recorded, seen) = (shapes(&recorded), shapes(&seen));
    let gone: Vec<_> = recorded.difference(&seen).collect();
    let new: Vec<_> = seen.difference(&recorded).collect();
    assert!(
        gone.is_empty() && new.is_empty(),
        "{file} tells another story.\nrecorded only: {gone:#?}\nseen only: {new:#?}"
    );
}

/// Each event with its fields, down to the values' kinds.
fn shapes(payloads: &[Value]) -> BTreeSet<String> {
    let shape = |payload: &Value| {
        let event = payload["hook_event_name"].as_str().unwrap_or("?");
        format!("{event} {}", shape_of(payload))
    };
    payloads.iter().map(shape).collect()
}

fn shape_of(value: &Value) -> Value {
    match value {
        // What a person or a model said has no shape.
        Value::String(_) => "text".into(),
        Value::Number(_) => "number".into(),
        Value::Bool(_) => "bool".into(),
        Value::Null => Value::Null,
        Value::Array(items) => {
            let shapes: BTreeSet<String> = items.iter().map(|item| shape_of(item).to_string()).collect();
            shapes.into_iter().map(Value::from).collect()
        }
        Value::Object(fields) => {
            let mut sorted: Vec<_> =
                fields.iter().map(|(name, field)| (name.clone(), shape_of(field))).collect();
            sorted.sort_by(|(one, _), (other, _)| one.cmp(other));
            Value::Object(Map::from_iter(sorted))
        }
    }
}

/// Takes out of a payload what differs from run to run.
struct Cleaner {
    /// What stands for the stage's folder, and what for the name that agents make of it.
    replaced: Vec<(String, &'static str)>,
    ids: Vec<String>,
}

impl Cleaner {
    fn of(stage: &Stage) -> Self {
        let folder: PathBuf = stage.project().parent().unwrap().to_owned();
        let folder = folder.display().to_string();
        let dashed: String =
            folder.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect();
        Self { replaced: vec![(folder, "/stage"), (dashed, "-stage")], ids: Vec::new() }
    }

    fn clean(&mut self, value: Value) -> Value {
        match value {
            Value::String(text) => self.clean_text(&text).into(),
            Value::Array(items) => items.into_iter().map(|item| self.clean(item)).collect(),
            Value::Object(fields) => {
                let clean = |(name, field): (String, Value)| {
                    let field = match name.as_str() {
                        "timestamp" => "2026-01-01T00:00:00.000Z".into(),
                        name if field.is_number() && (name.ends_with("_ms") || name.ends_with("Ms")) => {
                            1.into()
                        }
                        _ => self.clean(field),
                    };
                    (name, field)
                };
                Value::Object(fields.into_iter().map(clean).collect())
            }
            other => other,
        }
    }

    fn clean_text(&mut self, text: &str) -> String {
        let mut text = text.to_owned();
        for (from, to) in &self.replaced {
            text = text.replace(from, to);
        }
        self.number_ids(&strip_times(&text))
    }

    /// Puts the number of its appearance for every UUID, and for its first part where that stands alone.
    fn number_ids(&mut self, text: &str) -> String {
        let mut cleaned = String::new();
        let mut rest = text;
        while !rest.is_empty() {
            let Some(id) = uuid_at(rest) else {
                let next = rest.chars().next().unwrap();
                cleaned.push(next);
                rest = &rest[next.len_utf8()..];
                continue;
            };
            let known = self.ids.iter().position(|known| known == id);
            let n = known.unwrap_or_else(|| {
                self.ids.push(id.to_owned());
                self.ids.len() - 1
            });
            write!(cleaned, "{:08x}-0000-4000-8000-000000000000", n + 1).unwrap();
            rest = &rest[id.len()..];
        }
        for (n, id) in self.ids.iter().enumerate() {
            cleaned = cleaned.replace(&id[..8], &format!("{:08x}", n + 1));
        }
        cleaned
    }
}

fn uuid_at(text: &str) -> Option<&str> {
    let id = text.get(..36)?;
    let fits = |(at, c): (usize, char)| match at {
        8 | 13 | 18 | 23 => c == '-',
        _ => c.is_ascii_hexdigit(),
    };
    id.char_indices().all(fits).then_some(id)
}

/// Dates and times of day in the names of files.
fn strip_times(text: &str) -> String {
    // A digit stands for any digit.
    let (forms, plain) = (
        ["0000/00/00/rollout-0000-00-00T00-00-00-", "session-0000-00-00T00-00-"],
        ["2026/01/01/rollout-2026-01-01T00-00-00-", "session-2026-01-01T00-00-"],
    );
    let mut text = text.to_owned();
    for (form, plain) in forms.iter().zip(plain) {
        let fits = |part: &&str| {
            part.chars().zip(form.chars()).all(|(c, f)| if f == '0' { c.is_ascii_digit() } else { c == f })
        };
        let found =
            (0..text.len()).filter_map(|at| text.get(at..at + form.len())).find(fits).map(str::to_owned);
        if let Some(found) = found {
            text = text.replace(&found, plain);
        }
    }
    text
}
