//! Making a root, recognising one, and telling damage from emptiness.

use std::fs;
use std::os::unix::fs::{PermissionsExt, chown, symlink};
use std::path::Path;

use lychgate::state::{Access, StateError, Store};

use super::common::{TestRoot, begin, name, tree};

fn mode(path: &Path) -> u32 {
    fs::symlink_metadata(path).unwrap().permissions().mode() & 0o7777
}

fn open(path: &Path) -> Result<Store, StateError> {
    Store::open(path, Access::Write)
}

#[test]
fn a_reader_makes_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("root");
    assert!(matches!(Store::open(&path, Access::Read), Err(StateError::NoRoot { .. })));
    assert!(!path.exists());
    fs::create_dir(&path).unwrap();
    assert!(matches!(Store::open(&path, Access::Read), Err(StateError::NoRoot { .. })));
    assert!(tree(&path).is_empty());
}

#[test]
fn a_writer_makes_it_private_with_all_that_is_missing_above() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a/b/root");
    let store = open(&path).unwrap();
    assert_eq!(tree(&path), ["config.json", "secret"]);
    for folder in ["", "tasks", "sessions", "..", "../.."] {
        assert_eq!(mode(&path.join(folder)), 0o700, "{folder}");
    }
    for file in ["config.json", "secret"] {
        assert_eq!(mode(&path.join(file)), 0o600, "{file}");
    }
    assert_eq!(
        fs::read_to_string(path.join("config.json")).unwrap(),
        "{\"kind\":\"lychgate\",\"version\":1,\"checkpoints\":true}\n"
    );
    let mac = store.secret().unwrap().mac(&[b"x"]);
    assert_eq!(open(&path).unwrap().secret().unwrap().mac(&[b"x"]), mac, "the secret stays");
}

#[test]
fn an_interrupted_initialisation_is_done_again() {
    for leftovers in
        [&["secret"][..], &[".lych-abc"], &[".atomicwriteXY/tmpfile.tmp", "secret"], &["lost+found/"]]
    {
        let root = TestRoot::new();
        fs::remove_file(root.at("config.json")).unwrap();
        fs::remove_file(root.at("secret")).unwrap();
        for leftover in leftovers {
            fs::create_dir_all(root.at(leftover).parent().unwrap()).unwrap();
            if leftover.ends_with('/') {
                fs::create_dir_all(root.at(leftover)).unwrap();
            } else {
                fs::write(root.at(leftover), "12").unwrap();
            }
        }
        assert!(matches!(Store::open(&root.path(), Access::Read), Err(StateError::NoRoot { .. })));
        root.store().secret().unwrap();
        assert_eq!(tree(&root.path()), ["config.json", "secret"], "{leftovers:?}");
        assert!(!root.at(".atomicwriteXY").exists());
    }
}

#[test]
fn a_root_that_lost_its_config_is_damaged_not_empty() {
    let root = TestRoot::new();
    root.put(&["t"]);
    fs::remove_file(root.at("config.json")).unwrap();
    let before = tree(&root.path());
    for access in [Access::Read, Access::Write] {
        assert!(matches!(Store::open(&root.path(), access), Err(StateError::RootDamaged { .. })));
    }
    assert_eq!(tree(&root.path()), before);
}

#[test]
fn a_root_without_its_secret_is_damaged_where_the_secret_is_needed() {
    let root = TestRoot::new();
    for bad in ["", "00\n", &"g".repeat(64)] {
        fs::write(root.at("secret"), bad).unwrap();
        assert!(matches!(root.store().secret(), Err(StateError::RootDamaged { .. })));
    }
    fs::remove_file(root.at("secret")).unwrap();
    assert!(matches!(root.store().secret(), Err(StateError::RootDamaged { .. })));
    assert!(!root.at("secret").exists(), "a lost secret is never made anew");
    fs::create_dir(root.at("secret")).unwrap();
    assert!(matches!(root.store().secret(), Err(StateError::RootDamaged { .. })));
}

#[test]
fn what_is_not_ours_is_foreign_and_left_alone() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path();
    for (file, content) in [
        ("config.json", "{\"projects\":[]}"),
        ("config.json", ""),
        ("config.json", "[1]"),
        ("config.json", "{\"kind\":\"mux\",\"version\":1}"),
        ("notes.txt", "mine"),
        ("tasks/notes.txt", "mine"),
    ] {
        fs::create_dir_all(path.join(file).parent().unwrap()).unwrap();
        fs::write(path.join(file), content).unwrap();
        let foreign = if file.starts_with("tasks") { "root-damaged" } else { "foreign-root" };
        for access in [Access::Read, Access::Write] {
            assert_eq!(Store::open(path, access).unwrap_err().code().as_str(), foreign, "{file} {content}");
        }
        assert_eq!(tree(path), [file]);
        fs::remove_file(path.join(file)).unwrap();
    }
    fs::write(path.join("file"), "").unwrap();
    assert!(matches!(open(&path.join("file")), Err(StateError::ForeignRoot { .. })));
}

#[test]
fn a_damaged_config_beside_our_secret_is_damage() {
    let root = TestRoot::new();
    fs::write(root.at("config.json"), [0; 40]).unwrap();
    assert!(matches!(open(&root.path()), Err(StateError::RootDamaged { .. })));
}

#[test]
fn a_newer_root_is_read_and_not_written() {
    let root = TestRoot::new();
    root.put(&["t"]);
    fs::write(root.at("config.json"), "{\"kind\":\"lychgate\",\"version\":2}").unwrap();
    assert!(matches!(open(&root.path()), Err(StateError::NewerVersion { found: 2, .. })));
    let store = Store::open(&root.path(), Access::Read).unwrap();
    assert!(store.read_task(&name("t")).unwrap().is_some());
    assert!(begin(&store, &["t"]).is_err(), "a root opened for reading is never locked");
}

#[test]
fn the_root_may_be_a_link_but_nothing_inside_it() {
    let root = TestRoot::new();
    root.put(&["t"]);
    let link = root.path().with_file_name("link");
    symlink(root.path(), &link).unwrap();
    let store = open(&link).unwrap();
    assert_eq!(store.root(), fs::canonicalize(root.path()).unwrap());
    fs::rename(root.at("tasks/t"), root.at("elsewhere")).unwrap();
    symlink("../elsewhere", root.at("tasks/t")).unwrap();
    assert!(matches!(store.read_task(&name("t")), Err(StateError::LinkRefused { .. })));
    assert!(matches!(begin(&store, &["t"]), Err(StateError::LinkRefused { .. })));
    fs::rename(root.at("tasks"), root.at("real")).unwrap();
    symlink("real", root.at("tasks")).unwrap();
    assert!(matches!(store.read_task(&name("t")), Err(StateError::LinkRefused { .. })));
}

#[test]
fn a_link_in_the_place_of_a_row_is_refused() {
    let root = TestRoot::new();
    root.put(&["t"]);
    fs::rename(root.row_file("t"), root.at("tasks/t/real")).unwrap();
    symlink("real", root.row_file("t")).unwrap();
    assert!(matches!(root.store().read_task(&name("t")), Err(StateError::LinkRefused { .. })));
    assert!(matches!(begin(&root.store(), &["t"]), Err(StateError::LinkRefused { .. })));
}

#[test]
fn a_root_of_another_user_is_written_only_if_it_says_so() {
    let root = TestRoot::new();
    root.put(&["t"]);
    if chown(root.path(), Some(12345), None).is_err() {
        return;
    }
    assert!(matches!(open(&root.path()), Err(StateError::RootNotYours { owner: 12345, .. })));
    assert!(Store::open(&root.path(), Access::Read).unwrap().read_task(&name("t")).unwrap().is_some());
    for trust in ["12345", "[1, 12345]"] {
        let config = format!("{{\"kind\":\"lychgate\",\"version\":1,\"trustUid\":{trust},\"later\":true}}");
        fs::write(root.at("config.json"), config).unwrap();
        open(&root.path()).unwrap();
    }
}

#[test]
fn calls_that_make_one_root_at_once_all_succeed() {
    for _ in 0..10 {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a/root");
        let macs: Vec<_> = std::thread::scope(|scope| {
            let calls: Vec<_> =
                (0..6).map(|_| scope.spawn(|| open(&path).unwrap().secret().unwrap().mac(&[]))).collect();
            calls.into_iter().map(|call| call.join().unwrap()).collect()
        });
        assert!(macs.windows(2).all(|pair| pair[0] == pair[1]));
        assert_eq!(tree(&path), ["config.json", "secret"]);
    }
}
