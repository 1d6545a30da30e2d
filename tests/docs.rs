//! The pages under `docs/`, the README and the changelog, held to the sources: links, paths, items, fields, rules.
#![allow(missing_docs, clippy::disallowed_methods, reason = "a test looks at the sources")]

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use lychgate::protocol::invariants::{OutcomeRule, RowRule, StepRule, WorldRule};

fn at(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

fn read(path: &str) -> String {
    std::fs::read_to_string(at(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// The names in a folder of the checkout, sorted.
fn listed(folder: &str) -> Vec<String> {
    let entries = std::fs::read_dir(at(folder)).expect("because the folder is part of the checkout");
    let name = |entry: std::io::Result<std::fs::DirEntry>| {
        entry.expect("because it can be listed").file_name().to_string_lossy().into_owned()
    };
    let mut names: Vec<String> = entries.map(name).collect();
    names.sort();
    names
}

/// Every page by its path.
fn pages() -> BTreeMap<String, String> {
    let docs = listed("docs")
        .into_iter()
        .filter(|name| name.strip_suffix(".md").is_some())
        .map(|name| format!("docs/{name}"));
    let above = ["README.md", "CHANGELOG.md"].map(str::to_owned).into_iter().filter(|page| at(page).exists());
    let pages: BTreeMap<String, String> = docs.chain(above).map(|page| (page.clone(), read(&page))).collect();
    for wanted in ["ARCHITECTURE", "CODES", "RULES", "STATE", "TESTING"] {
        assert!(pages.contains_key(&format!("docs/{wanted}.md")), "docs/{wanted}.md is missing");
    }
    pages
}

/// Fails with everything that is wrong on any page.
fn check(what: &str, wrong_on: impl Fn(&str, &str) -> Vec<String>) {
    let told = |(page, text): (&String, &String)| -> Vec<String> {
        wrong_on(page, text).into_iter().map(|wrong| format!("{page}: {wrong}")).collect()
    };
    let wrong: Vec<String> = pages().iter().flat_map(told).collect();
    assert!(wrong.is_empty(), "{what}:\n{}", wrong.join("\n"));
}

/// The targets of the links of a page.
fn links(text: &str) -> impl Iterator<Item = &str> {
    text.split("](").skip(1).filter_map(|rest| rest.split(')').next())
}

/// What stands between backticks on one line.
fn quoted(text: &str) -> impl Iterator<Item = &str> {
    text.lines().filter(|line| !line.starts_with("```")).flat_map(|line| line.split('`').skip(1).step_by(2))
}

/// A heading's anchor, as forges make it.
fn anchor(heading: &str) -> String {
    let kept = heading.trim().to_lowercase();
    let kept = kept.chars().filter(|c| c.is_alphanumeric() || *c == ' ' || *c == '-' || *c == '_');
    kept.map(|c| if c == ' ' { '-' } else { c }).collect()
}

fn has_anchor(page: &str, wanted: &str) -> bool {
    read(page)
        .lines()
        .filter_map(|line| line.strip_prefix('#'))
        .any(|line| anchor(line.trim_start_matches('#')) == wanted)
}

#[test]
fn every_relative_link_leads_somewhere() {
    let is_dead = |page: &str, link: &&str| {
        let (path, place) = link.split_once('#').unwrap_or((link, ""));
        let folder = Path::new(page).parent().unwrap_or(Path::new(""));
        let target = if path.is_empty() { PathBuf::from(page) } else { folder.join(path) };
        let target = target.to_string_lossy().replace("docs/../", "");
        !at(&target).exists() || (!place.is_empty() && !has_anchor(&target, place))
    };
    check("dead links", |page, text| {
        let relative = links(text).filter(|link| !link.starts_with("https://"));
        relative.filter(|link| is_dead(page, link)).map(str::to_owned).collect()
    });
    assert!(links(&read("docs/STATE.md")).count() > 10, "links are found at all");
}

#[test]
fn every_path_of_the_checkout_exists() {
    let ends = |c: char| !(c.is_alphanumeric() || "/._-".contains(c));
    check("paths that do not exist", |_, text| {
        let words = text.split(ends).map(|word| word.trim_end_matches('.'));
        let paths = words.filter(|word| {
            ["src/", "tests/", "docs/", "examples/"].iter().any(|folder| word.starts_with(folder))
        });
        paths.filter(|path| !at(path).exists()).map(str::to_owned).collect()
    });
}

/// The sources of a module path, as far as its segments are modules, and the segments that are left.
fn module(path: &str) -> (String, Vec<&str>) {
    let mut segments: Vec<&str> = path.split("::").collect();
    let mut place = at("src");
    let mut text = String::new();
    while let Some(next) = segments.first() {
        let (file, folder) = (place.join(format!("{next}.rs")), place.join(next));
        if !file.exists() && !folder.is_dir() {
            break;
        }
        text = std::fs::read_to_string(&file).unwrap_or_default();
        for inner in std::fs::read_dir(&folder).into_iter().flatten().flatten() {
            text.push_str(&std::fs::read_to_string(inner.path()).unwrap_or_default());
        }
        place = folder;
        segments.remove(0);
    }
    (text, segments)
}

/// What a source defines: functions, types, modules. Types and variants may come from a macro, so any capitalised
/// word counts.
fn defined(text: &str) -> BTreeSet<&str> {
    let lines = text.lines().filter(|line| !line.trim_start().starts_with("//"));
    let words = lines.flat_map(|line| line.split(|c: char| !(c.is_alphanumeric() || c == '_')));
    let mut before = "";
    let mut found = BTreeSet::new();
    for word in words.filter(|word| !word.is_empty()) {
        let defines = ["fn", "mod", "struct", "enum", "trait", "const", "macro_rules"].contains(&before);
        if defines || word.starts_with(char::is_uppercase) {
            found.insert(word);
        }
        before = word;
    }
    found
}

/// Whether a module path, with items behind it, is in the sources.
fn is_item(path: &str) -> bool {
    let (text, items) = module(path);
    let defined = defined(&text);
    !text.is_empty() && items.iter().all(|item| defined.contains(item))
}

#[test]
fn every_module_path_is_in_the_sources() {
    assert!(is_item("protocol::state::Row::phase") && is_item("state::commit") && is_item("seam"));
    assert!(!is_item("protocol::state::Row::phases") && !is_item("protocol::nothing") && !is_item("stat"));
    let layers = ["protocol::", "state::", "commands::", "answer::", "cli::", "seam::"];
    check("module paths that are not in the sources", |_, text| {
        let paths = quoted(text).filter(|word| layers.iter().any(|layer| word.starts_with(layer)));
        paths.filter(|path| !is_item(path)).map(str::to_owned).collect()
    });
    assert!(quoted(&read("docs/RULES.md")).filter(|word| word.contains("::")).count() > 100);
}

#[test]
fn no_page_is_unfinished_or_sends_readers_to_a_registry() {
    let unfinished = [["TO", "DO"], ["FIX", "ME"], ["XX", "X"], ["TB", "D"]].map(|parts| parts.concat());
    // The name of this test's own file is the name of a host.
    let ours = "tests/docs.rs";
    let hosts =
        [["crates", "io"], ["docs", "rs"], ["npmjs", "com"], ["pypi", "org"]].map(|parts| parts.join("."));
    check("words that must not be there", |_, text| {
        let words = || text.split(|c: char| !c.is_alphanumeric());
        let left = unfinished.iter().filter(|word| words().any(|found| found == *word));
        left.chain(hosts.iter().filter(|host| text.replace(ours, "").contains(host.as_str())))
            .cloned()
            .collect()
    });
}

#[test]
fn every_rule_hazard_and_decision_is_there_once() {
    let text = read("docs/RULES.md");
    for (kind, prefix, last) in
        [("Rule", "", 106), ("Hazard", "H", 15), ("Decision", "", 19), ("Rule", "O", 73)]
    {
        let opening = format!("- **{kind} ");
        let found: Vec<&str> = text
            .lines()
            .filter_map(|line| line.strip_prefix(&opening).and_then(|rest| rest.split_once(".**")))
            .map(|(number, _)| number)
            .filter(|number| number.strip_prefix(prefix).is_some_and(|n| n.parse::<u32>().is_ok()))
            .collect();
        let wanted: Vec<String> = (1..=last).map(|n| format!("{prefix}{n}")).collect();
        assert_eq!(found, wanted, "{kind}s, each once and in order");
    }
}

/// The numbers of the rules that a text names, as in "rule 7", "Rules 6 and 96" or `rule_86_...`.
fn rules_named(text: &str) -> BTreeSet<u32> {
    let mut named = BTreeSet::new();
    let text = text.to_lowercase().replace("finding_", "rule_");
    for after in text.split("rule").skip(1) {
        let mut rest = after.strip_prefix('s').unwrap_or(after);
        loop {
            rest = rest.trim_start_matches([' ', '_', ',']);
            rest = rest.strip_prefix("and ").unwrap_or(rest);
            let digits_len = rest.bytes().take_while(u8::is_ascii_digit).count();
            let (digits, behind) = rest.split_at(digits_len);
            let Ok(number) = digits.parse() else { break };
            named.insert(number);
            rest = behind;
        }
    }
    named
}

/// Every source below a folder of the tests, in one text. This file names rules only to show how.
fn sources_below(folder: &Path) -> String {
    let entries = std::fs::read_dir(folder).expect("because the folder is part of the checkout");
    let paths = entries.map(|entry| entry.expect("because it can be listed").path());
    let others = paths.filter(|path| !path.ends_with("tests/docs.rs"));
    let read = |path: PathBuf| {
        if path.is_dir() {
            return sources_below(&path);
        }
        std::fs::read_to_string(&path).expect("because a test is text")
    };
    others.map(read).collect()
}

#[test]
fn every_rule_that_is_built_is_named_by_a_test_or_by_an_invariant_that_tests_break() {
    assert_eq!(guard_rules_named("// O1\n#[test]\nfn o8_it() { // O47, no3"), [8, 47].into());
    assert_eq!(rules_named("/// Rules 6, 7 and 96. A rule. fn rule_86_it()"), [6, 7, 86, 96].into());
    let mut named = rules_named(&sources_below(&at("tests")));
    let invariants = (RowRule::ALL.iter().map(|rule| rule.rules()))
        .chain(StepRule::ALL.iter().map(|rule| rule.rules()))
        .chain(WorldRule::ALL.iter().map(|rule| rule.rules()))
        .chain(OutcomeRule::ALL.iter().map(|rule| rule.rules()));
    named.extend(invariants.flat_map(|rules| rules_named(&format!("rules {rules}"))));
    let of_the_guard =
        guard_rules_named(&(sources_below(&at("tests")) + &sources_below(&at("src/protocol/guard"))));
    let text = read("docs/RULES.md");
    let built = text.lines().filter_map(|line| line.strip_prefix("- **Rule ")?.split_once(".**"));
    let built = built.filter(|(_, says)| !says.trim_start().starts_with("Not built"));
    let unnamed: Vec<&str> = built
        .map(|(number, _)| number)
        .filter(|number| match number.strip_prefix('O') {
            Some(number) => !number.parse().is_ok_and(|number| of_the_guard.contains(&number)),
            None => !number.parse().is_ok_and(|number| named.contains(&number)),
        })
        .collect();
    assert!(unnamed.is_empty(), "no test names these rules: {unnamed:?}");
}

/// The numbers of the guard's rules that the tests in a text name, as in `// O47` or `fn o8_an_automatic_turn()`.
fn guard_rules_named(text: &str) -> BTreeSet<u32> {
    let tests = text.split("#[test]").skip(1);
    let words = tests.flat_map(|test| test.split(|c: char| !c.is_ascii_alphanumeric()));
    words.filter_map(|word| word.strip_prefix(['O', 'o'])?.parse().ok()).collect()
}

/// The public fields of a source file, as they are named on disk.
fn fields(path: &str) -> Vec<String> {
    let camel = |name: &str| {
        let mut words = name.split('_');
        let first = words.next().unwrap_or_default().to_owned();
        words.fold(first, |text, word| {
            let (head, tail) = word.split_at_checked(1).unwrap_or((word, ""));
            text + &head.to_uppercase() + tail
        })
    };
    let text = read(path);
    let names = text.lines().filter_map(|line| line.strip_prefix("    pub ")?.split_once(": "));
    names.map(|(name, _)| name).filter(|name| !name.contains(' ') && *name != "extra").map(camel).collect()
}

#[test]
fn every_field_on_disk_is_explained() {
    let text = read("docs/STATE.md");
    let explained: BTreeSet<&str> = quoted(&text).collect();
    let files = ["row", "row/claim", "row/ending", "row/send", "history", "requests", "run"];
    let guard =
        ["session", "chain", "background", "queues", "queues/gaps"].map(|file| format!("guard/{file}"));
    let files = files.into_iter().map(str::to_owned).chain(guard);
    let mut wanted: Vec<String> = files.flat_map(|file| fields(&format!("src/protocol/{file}.rs"))).collect();
    wanted.extend(fields("src/state/pending.rs"));
    assert!(wanted.len() > 80 && wanted.iter().any(|field| field == "taskAttemptRetiredBy"), "{wanted:?}");
    // Fields of values in memory: the closing part of a settlement and the name of a part lie flat in it, and an
    // archive is a file.
    // `message` is part of an answer.
    let flat = ["closure", "of", "number", "message"];
    wanted.retain(|field| !explained.contains(field.as_str()) && !flat.contains(&field.as_str()));
    assert!(wanted.is_empty(), "docs/STATE.md explains nothing about {wanted:?}");
}

#[test]
fn every_module_is_on_the_map() {
    let text = read("docs/ARCHITECTURE.md");
    let named: BTreeSet<&str> = quoted(&text).collect();
    let mut missing = Vec::new();
    for folder in ["src", "src/commands", "src/protocol", "src/state"] {
        for name in listed(folder) {
            let stem = name.trim_end_matches(".rs");
            if stem != "mod" && !named.contains(stem) && !text.contains(&format!("`{folder}/{name}`")) {
                missing.push(format!("{folder}/{name}"));
            }
        }
    }
    assert!(missing.is_empty(), "not in docs/ARCHITECTURE.md: {missing:?}");
}

#[test]
fn every_test_target_is_described() {
    let cargo = read("Cargo.toml");
    let text = read("docs/TESTING.md");
    let targets = cargo.split("[[test]]").skip(1).filter_map(|rest| rest.split('"').nth(1));
    let missing: Vec<&str> = targets.filter(|name| !text.contains(&format!("\n| `{name}`"))).collect();
    assert!(missing.is_empty(), "not in docs/TESTING.md: {missing:?}");
}
