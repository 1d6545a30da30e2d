//! What two runs are compared by, with what differs from run to run left out.

use std::collections::BTreeMap;
use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash as _, Hasher as _};
use std::path::Path;

use serde_json::Value;

use super::world::{Bench, Entry, Outcome};

pub fn is_temporary(name: &str) -> bool {
    name.starts_with(".lych-") || name.starts_with(".atomicwrite") || name.starts_with(".tmp")
}

/// Rows, checkpoints and sessions change, and some hold the ids of commits; the books compare what they say.
fn is_document(name: &str) -> bool {
    matches!(name, "row.json" | "run.json" | "session.json")
}

/// Everything that a call which is over must not leave. What a record still names is not left over: it is put in its
/// place by whoever comes to that row or checkpoint.
pub fn leftovers(tree: &[Entry]) -> Vec<String> {
    let rows = tree.iter().filter(|entry| entry.name() == "row.json").filter_map(|row| row.bytes.as_deref());
    let files: Vec<Value> = rows.filter_map(|bytes| serde_json::from_slice(bytes).ok()).collect();
    let records = files.iter().map(|file| &file["document"]["pending"]);
    let parts = records.filter_map(|record| record["rows"].as_array()).flatten();
    let named: Vec<&str> = parts.filter_map(|part| part["staged"].as_str()).collect();
    let left = tree.iter().filter(|entry| is_temporary(entry.name()) && !named.contains(&entry.name()));
    left.map(|entry| entry.path.clone()).collect()
}

/// The evidence that counts.
pub fn evidence(bench: &Bench) -> BTreeMap<String, Vec<u8>> {
    let tree = bench.tree();
    let read =
        |path: &str| tree.iter().find(|entry| entry.path == path).and_then(|entry| entry.bytes.clone());
    let mut counts: BTreeMap<String, Vec<u8>> = tree
        .iter()
        .filter(|entry| entry.path.starts_with("root/sessions/") && !is_temporary(entry.name()))
        .filter(|entry| !is_document(entry.name()))
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
pub fn outside(bench: &Bench) -> BTreeMap<String, Vec<u8>> {
    let files = bench.tree().into_iter().filter(|entry| !entry.path.starts_with("root/"));
    let files = files.filter(|entry| !is_temporary(entry.name()));
    files.filter_map(|entry| entry.bytes.map(|bytes| (entry.path, bytes))).collect()
}

/// A tree as two runs can be compared by: rows and checkpoints by what they say, an empty folder of a task left out.
pub fn comparable(tree: &[Entry], secret_differs: bool) -> Vec<(String, u32, String)> {
    let has_content = |path: &str| tree.iter().any(|entry| entry.path.starts_with(&format!("{path}/")));
    let kept = tree.iter().filter(|entry| {
        entry.bytes.is_some() || !entry.path.starts_with("root/tasks/") || has_content(&entry.path)
    });
    kept.map(|entry| {
        let content = match &entry.bytes {
            None => String::new(),
            Some(_) if entry.path == "root/secret" && secret_differs => "[SECRET]".to_owned(),
            Some(bytes) if is_document(entry.name()) => {
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

pub fn without_tokens(mut outcome: Outcome, secret_differs: bool) -> Outcome {
    if secret_differs {
        outcome.stdout = blank_after(&outcome.stdout, "tok_");
    }
    outcome
}

pub fn lossy(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

pub fn equal<T: std::fmt::Debug + PartialEq>(what: &str, found: &T, expected: &T) -> Result<(), String> {
    if found == expected {
        return Ok(());
    }
    Err(format!("{what}: {}", difference(found, expected)))
}

/// Where the texts of two values begin to differ.
pub fn difference<T: std::fmt::Debug>(found: &T, expected: &T) -> String {
    let (found, expected) = (format!("{found:?}"), format!("{expected:?}"));
    let at = found.bytes().zip(expected.bytes()).take_while(|(a, b)| a == b).count();
    let cut = |text: &str| {
        let bytes = text.as_bytes();
        lossy(bytes.get(at.saturating_sub(160)..bytes.len().min(at + 400)).unwrap_or_default())
    };
    format!("found\n    ...{}\n  expected\n    ...{}", cut(&found), cut(&expected))
}
