//! The files themselves: links, modes, owners, what cannot be read or written, and others who write them too.

use std::os::unix::fs::{MetadataExt as _, PermissionsExt, chown, symlink};
use std::path::Path;
use std::process::{Command, Stdio};

use super::{CLAUDE, at_home, backup, hook, names, put, text};
use crate::common::{BIN, TestRoot};

fn mode(path: &Path) -> u32 {
    std::fs::metadata(path).unwrap().mode() & 0o7777
}

#[test]
fn settings_that_are_not_what_they_should_be_are_left_alone() {
    let root = TestRoot::new();
    let path = at_home(&root, CLAUDE);
    for (bytes, why) in [
        (&b"{\n  // mine\n  \"a\": 1\n}"[..], "it is not JSON: key must be a string at line 2 column 3"),
        (b"{\"a\": 1,}", "it is not JSON: trailing comma at line 1 column 9"),
        (b"", "it is not JSON: EOF while parsing a value at line 1 column 0"),
        (b"[]", "it is JSON, but not an object"),
        (b"null", "it is JSON, but not an object"),
        (b"{\"hooks\": []}", "its `hooks` is not an object"),
        (b"{\"hooks\": {\"Stop\": {}}}", "its `hooks.Stop` is not a list"),
        (b"{\"hooks\": {}, \"hooks\": {}}", "it has `hooks` twice"),
        (b"{\"a\": \"\xff\"}", "it is not UTF-8"),
    ] {
        put(&path, bytes);
        let out = hook(&root, "install claude").is(65, "settings-unreadable");
        assert_eq!(
            out.get("message"),
            format!("the settings `[DIR]/home/{CLAUDE}` cannot be understood: {why}")
        );
        assert_eq!(std::fs::read(&path).unwrap(), bytes);
        assert!(!backup(&path).exists());
    }
    let deep = format!("{{\"a\": {}{}}}", "[".repeat(200), "]".repeat(200));
    put(&path, &deep);
    hook(&root, "install claude").is(65, "settings-unreadable");
    put(&path, vec![b' '; 5 << 20]);
    hook(&root, "install claude").is(65, "settings-unreadable");
    put(&at_home(&root, ".cursor/hooks.json"), "{\"version\": 2}");
    let out = hook(&root, "install cursor").is(65, "settings-unreadable");
    assert!(out.get("message").ends_with("its `version` is 2, and only 1 is understood"), "{out}");
}

#[test]
fn what_is_no_file_is_not_opened() {
    let root = TestRoot::new();
    let path = at_home(&root, CLAUDE);
    std::fs::create_dir_all(&path).unwrap();
    hook(&root, "install claude").is(65, "settings-unreadable");
    std::fs::remove_dir(&path).unwrap();
    // Opening a FIFO would hang.
    assert!(Command::new("mkfifo").arg(&path).status().unwrap().success());
    hook(&root, "install claude").is(65, "settings-unreadable");
    std::fs::remove_file(&path).unwrap();
    symlink(&path, &path).unwrap();
    let out = hook(&root, "install claude").is(65, "settings-unreadable");
    assert!(out.get("message").ends_with("it is a link that leads to itself"), "{out}");
}

#[test]
fn a_link_stays_a_link_and_what_it_leads_to_is_written() {
    let root = TestRoot::new();
    let path = at_home(&root, CLAUDE);
    let dotfiles = root.scratch().join("dotfiles");
    for target in
        ["../../dotfiles/claude.json".to_owned(), dotfiles.join("claude.json").display().to_string()]
    {
        put(&dotfiles.join("claude.json"), "{\n  \"a\": 1\n}\n");
        std::fs::set_permissions(dotfiles.join("claude.json"), PermissionsExt::from_mode(0o640)).unwrap();
        put(&path, "");
        std::fs::remove_file(&path).unwrap();
        symlink(&target, &path).unwrap();
        let out = hook(&root, "install claude").is(0, "installed");
        assert_eq!(std::fs::read_link(&path).unwrap(), Path::new(&target));
        assert!(text(&dotfiles.join("claude.json")).contains("hook claude"));
        assert_eq!(mode(&dotfiles.join("claude.json")), 0o640);
        assert!(out.get("target").ends_with("claude.json"), "{out}");
        assert!(backup(&path).exists(), "the copy lies beside the name the agent knows");
        assert_eq!(std::fs::read_dir(&dotfiles).unwrap().count(), 1, "and nothing in the other folder");
        hook(&root, "uninstall claude").is(0, "uninstalled");
        assert_eq!(text(&dotfiles.join("claude.json")), "{\n  \"a\": 1\n}\n");
        std::fs::remove_file(backup(&path)).unwrap();
        std::fs::remove_file(&path).unwrap();
    }
    symlink("../../dotfiles/new.json", &path).unwrap();
    hook(&root, "install claude").is(0, "installed");
    assert!(text(&dotfiles.join("new.json")).contains("hook claude"));
    hook(&root, "uninstall claude").is(0, "uninstalled");
    assert!(path.is_symlink() && !dotfiles.join("new.json").exists(), "as it was");
}

#[test]
fn mode_and_owner_stay_and_a_new_file_gets_those_of_the_moment() {
    let root = TestRoot::new();
    let path = at_home(&root, CLAUDE);
    put(&path, "{\"env\": {\"TOKEN\": \"secret\"}}");
    std::fs::set_permissions(&path, PermissionsExt::from_mode(0o600)).unwrap();
    chown(&path, Some(12_345), Some(54_321)).unwrap();
    hook(&root, "install claude").is(0, "installed");
    for file in [&path, &backup(&path)] {
        let found = std::fs::metadata(file).unwrap();
        assert_eq!((mode(file), found.uid(), found.gid()), (0o600, 12_345, 54_321), "{}", file.display());
    }
    let shell = format!("umask 027; exec {BIN} hook install codex --json");
    let mut command = Command::new("sh");
    command.args(["-c", &shell]).env("HOME", at_home(&root, "")).env("LYCHGATE_ROOT", root.path());
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    root.finish(command.spawn().unwrap()).is(0, "installed");
    assert_eq!(mode(&at_home(&root, ".codex/hooks.json")), 0o640);
}

#[test]
fn a_read_only_file_is_not_written_around() {
    let root = TestRoot::new();
    let path = at_home(&root, CLAUDE);
    put(&path, "{}");
    std::fs::set_permissions(&path, PermissionsExt::from_mode(0o444)).unwrap();
    let before = names(&root);
    let out = hook(&root, "install claude").is(74, "io");
    assert_eq!(out.get("message"), format!("the settings `[DIR]/home/{CLAUDE}` are read-only"));
    assert!(out.get("hint").contains("--dry-run"), "{out}");
    assert_eq!((text(&path).as_str(), names(&root)), ("{}", before));
    hook(&root, "install claude --dry-run").is(0, "installed");
}

#[test]
fn a_change_by_somebody_else_at_the_same_time_is_not_written_over() {
    let root = TestRoot::new();
    let path = at_home(&root, CLAUDE);
    put(&path, "{}");
    let paused = root.paused(&["hook", "install", "claude"], "settings-read");
    root.wait_reached("settings-read");
    put(&path, "{\"permissions\": {\"allow\": [\"Read\"]}}");
    root.go("settings-read");
    root.finish(paused).is(75, "busy");
    assert_eq!(text(&path), "{\"permissions\": {\"allow\": [\"Read\"]}}");
    hook(&root, "install claude").is(0, "installed");
    assert!(text(&path).contains("\"Read\""));
}

/// Each sync and rename of the call fails in its turn: the old settings stand, or the new ones are there whole.
#[test]
fn settings_are_never_half_written() {
    let root = TestRoot::new();
    let path = at_home(&root, CLAUDE);
    let mut codes = Vec::new();
    for call in ["fsync", "rename,renameat,renameat2"] {
        for nth in 1..9 {
            put(&path, "{\"a\": 1}");
            drop(std::fs::remove_file(backup(&path)));
            let plain = root.command(&["hook", "install", "claude"]);
            let mut command = Command::new("strace");
            command.args(["-f", "-qq", "-o", &root.file("strace"), "-e"]);
            command
                .arg(format!("inject={call}:error=EIO:when={nth}"))
                .args([BIN, "hook", "install", "claude", "--json"]);
            command.env_clear().current_dir(root.scratch()).stdout(Stdio::piped()).stderr(Stdio::piped());
            command.envs(plain.get_envs().filter_map(|(name, value)| Some((name, value?))));
            let out = root.finish(command.spawn().unwrap());
            let is_new = text(&path).contains("hook claude");
            match out.exit {
                0 | 71 => assert!(is_new, "{out}"),
                74 => assert_eq!(text(&path), "{\"a\": 1}", "{out}"),
                _ => panic!("{out}"),
            }
            let left = std::fs::read_dir(path.parent().unwrap()).unwrap().map(Result::unwrap);
            let stray = left.filter(|entry| entry.file_name().to_string_lossy().starts_with('.')).count();
            assert_eq!(stray, 0, "nothing is left beside it");
            codes.push(out.code());
            if out.exit == 0 {
                break;
            }
        }
    }
    for code in ["io", "uncertain", "installed"] {
        assert!(codes.iter().any(|found| found == code), "{code} in {codes:?}");
    }
}
