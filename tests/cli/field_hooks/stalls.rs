//! Locks, and state that cannot be read: H51 and H53.

use serde_json::json;

use super::Agent;
use crate::common::TestRoot;

#[test]
fn h51_there_is_no_lock_that_could_be_left_behind_half_made() {
    use std::os::unix::fs::PermissionsExt as _;
    let root = TestRoot::new();
    let agent = Agent::at_work(&root, "s");
    let guard = agent.books().file().parent().unwrap().to_owned();
    // Somebody dies with the lock, at the worst moment.
    root.park(&["session", "plan", "claude:s", "off"], "locked-session").kill();
    root.park(&["session", "plan", "claude:s", "off"], "before-rename").kill();
    assert!(agent.stop());
    // What looks like a lock is none, whatever it is.
    for (n, folder) in [root.path(), guard, root.path().join("sessions")].into_iter().enumerate() {
        std::fs::write(folder.join("lock"), ["", "\0\u{1}garbage", "4711\n"][n]).unwrap();
        std::fs::write(folder.join("session.json.lock"), "").unwrap();
        std::fs::set_permissions(folder.join("lock"), std::fs::Permissions::from_mode(0o400)).unwrap();
        std::fs::create_dir(folder.join(".lock")).unwrap();
        agent.work();
        assert!(agent.stop(), "{}", folder.display());
    }
    let _ = root.json(&["inspect", "--session", "claude:s"]).is(0, "ok");
}

#[test]
fn h53_state_that_cannot_be_read_is_neither_empty_nor_repaired() {
    let root = TestRoot::new();
    let agent = Agent::at_work(&root, "s");
    assert_eq!(agent.stops(2), 2);
    let file = agent.books().file();
    let sound = std::fs::read_to_string(&file).unwrap();
    let damaged: [(&str, Vec<u8>); 8] = [
        ("no bytes", Vec::new()),
        ("an array", b"[]".to_vec()),
        ("an empty object", b"{}".to_vec()),
        ("torn", sound.as_bytes()[..sound.len() / 2].to_vec()),
        ("zeros", vec![0; sound.len()]),
        ("another sum", sound.replacen("\"attempts\":2", "\"attempts\":0", 1).into_bytes()),
        ("a newer version", sound.replacen("\"version\":1", "\"version\":99", 1).into_bytes()),
        ("text behind it", format!("{sound}{sound}").into_bytes()),
    ];
    for (what, bytes) in damaged {
        assert_ne!(bytes, sound.as_bytes(), "{what}");
        std::fs::write(&file, &bytes).unwrap();
        let claim = root.json(&["claim", "claude:s"]);
        assert_eq!(claim.exit, 65, "{what}: {claim}");
        assert_eq!(claim.get("claimed"), "false", "{what}");
        // The agent's stop and a person's prompt go through all the same.
        agent.stop_with(&json!({})).is_unusable();
        agent.event("UserPromptSubmit", &json!({ "prompt": "hello" })).is_unusable();
        assert_eq!(std::fs::read(&file).unwrap(), bytes, "{what}: the bytes are evidence");
    }
    std::fs::remove_file(&file).unwrap();
    std::fs::create_dir(&file).unwrap();
    assert_eq!(root.json(&["claim", "claude:s"]).exit, 65);
    agent.stop_with(&json!({})).is_unusable();
    std::fs::remove_dir(&file).unwrap();
    std::fs::write(&file, &sound).unwrap();
    assert_eq!(agent.stops(2), 0, "and what was spent is spent");
    assert_eq!(agent.attempts(), 2);
}

#[test]
fn h53_an_error_of_the_disk_is_told_apart_from_damage() {
    let root = TestRoot::new();
    let agent = Agent::at_work(&root, "s");
    let before = std::fs::read(agent.books().file()).unwrap();
    let file = agent.books().file().display().to_string();
    let call = root.command(&["claim", "claude:s", "--json"]);
    let mut claim = std::process::Command::new("strace");
    claim.args(["-qq", "-o", "/dev/null", "-P", &file, "-e", "trace=read", "-e", "inject=read:error=EIO"]);
    claim.arg(crate::common::BIN).args(call.get_args()).env_clear();
    claim.envs(call.get_envs().filter_map(|(name, value)| Some((name, value?))));
    claim.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped());
    let out = root.finish(claim.spawn().unwrap());
    assert_eq!((out.exit, out.get("claimed").as_str()), (74, "false"), "{out}");
    assert_eq!(std::fs::read(agent.books().file()).unwrap(), before);
    assert!(agent.stop());
}
