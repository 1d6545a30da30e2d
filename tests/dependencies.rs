//! What ships: licences that fit ours, and no crate twice without a reason.
#![allow(missing_docs, clippy::disallowed_methods, reason = "a test asks cargo")]

use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

use serde_json::Value;

/// Licences that MIT OR Apache-2.0 can be given out with. One of an `OR` is enough, all of an `AND` are needed.
const LICENCES: [&str; 9] = [
    "MIT",
    "Apache-2.0",
    "Apache-2.0 WITH LLVM-exception",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "ISC",
    "Unicode-3.0",
    "Unlicense",
    "Zlib",
];

/// Crates that are in the shipped program twice, and why that is accepted.
const TWICE: [(&str, &str); 2] = [
    ("rustix", "atomicwrites still uses 0.38; it writes config.json, once"),
    ("linux-raw-sys", "comes with the two versions of rustix"),
];

fn metadata() -> Value {
    let output = Command::new(env!("CARGO"))
        .args([
            "metadata",
            "--format-version",
            "1",
            "--locked",
            "--filter-platform",
            "x86_64-unknown-linux-gnu",
        ])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .expect("because cargo runs this test");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).expect("because cargo prints JSON")
}

fn text<'v>(value: &'v Value, key: &str) -> &'v str {
    value.get(key).and_then(Value::as_str).unwrap_or_default()
}

fn list<'v>(value: &'v Value, key: &str) -> impl Iterator<Item = &'v Value> {
    value.get(key).and_then(Value::as_array).into_iter().flatten()
}

/// The packages that end up in the program: what the root needs without its development dependencies.
fn shipped(metadata: &Value) -> BTreeSet<String> {
    let resolve = metadata.get("resolve").expect("because the dependencies are resolved");
    let nodes: BTreeMap<&str, &Value> = list(resolve, "nodes").map(|node| (text(node, "id"), node)).collect();
    let mut wanted = vec![text(resolve, "root").to_owned()];
    let mut seen = BTreeSet::new();
    while let Some(id) = wanted.pop() {
        let Some(node) = nodes.get(id.as_str()).copied().filter(|_| seen.insert(id.clone())) else {
            continue;
        };
        for dependency in list(node, "deps") {
            if list(dependency, "dep_kinds").any(|kind| kind.get("kind").is_none_or(Value::is_null)) {
                wanted.push(text(dependency, "pkg").to_owned());
            }
        }
    }
    seen
}

fn fits(licence: &str) -> bool {
    let any =
        |one: &str| one.split(" AND ").all(|part| LICENCES.contains(&part.trim_matches(['(', ')', ' '])));
    licence.replace('/', " OR ").split(" OR ").any(|one| any(one.trim()))
}

#[test]
fn every_licence_fits() {
    let metadata = metadata();
    let odd: Vec<String> = list(&metadata, "packages")
        .filter(|package| !fits(text(package, "license")))
        .map(|package| format!("{}: {}", text(package, "name"), text(package, "license")))
        .collect();
    assert!(odd.is_empty(), "{odd:?}");
}

#[test]
fn no_crate_ships_twice_without_a_reason() {
    let metadata = metadata();
    let shipped = shipped(&metadata);
    let mut versions: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for package in list(&metadata, "packages").filter(|package| shipped.contains(text(package, "id"))) {
        versions.entry(text(package, "name")).or_default().insert(text(package, "version"));
    }
    assert!(
        versions.len() > 20,
        "only {} crates were found, so this looked at the wrong thing",
        versions.len()
    );
    let twice: Vec<&str> =
        versions.iter().filter(|(_, found)| found.len() > 1).map(|(name, _)| *name).collect();
    let accepted: BTreeSet<&str> = TWICE.iter().map(|(name, _)| *name).collect();
    assert_eq!(twice.into_iter().collect::<BTreeSet<_>>(), accepted);
}

#[test]
fn every_shipped_crate_comes_from_the_registry() {
    let metadata = metadata();
    let shipped = shipped(&metadata);
    let odd: Vec<&str> = list(&metadata, "packages")
        .filter(|package| shipped.contains(text(package, "id")) && text(package, "name") != "lychgate")
        .filter(|package| !text(package, "source").starts_with("registry+"))
        .map(|package| text(package, "name"))
        .collect();
    assert!(odd.is_empty(), "{odd:?}");
}
