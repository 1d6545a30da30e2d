//! A lost answer is harmless: a repeated call gives the first answer again, and has one effect. What an answer allows
//! is allowed once.

use super::{Session, todo_list, told};
use crate::common::TestRoot;
use crate::kit::Process;

const ID: [&str; 2] = ["--request-id", "the same call"];

#[test]
fn every_changing_call_is_repeated() {
    let root = TestRoot::new();
    std::fs::create_dir(root.file("b")).unwrap();
    let list = todo_list(&["pending"]);
    let script: &[(&str, &str, &str)] = &[
        ("session open s --guard", "", "opened"),
        ("prompt submit s --alias p1 --file -", "do it", "submitted"),
        ("todo s", &list, "todo-counted"),
        ("say s", "typed", "said"),
        ("drain s", "", "drained"),
        ("background s start b1", "", "background-noted"),
        ("background s mark b1", "", "background-noted"),
        ("background s end b1", "", "background-noted"),
        ("notify s put --task b1", "", "queued"),
        ("cron s put --task c1", "", "queued"),
        ("prompt submit s --alias p2", "", "submitted"),
        ("claim s --prompt p1", "", "prompt-queued"),
        ("prompt remove s p2", "", "prompt-removed"),
        ("prompt submit s --alias p3", "", "submitted"),
        ("prompt finish s p1 --as failed", "", "prompt-finished"),
        ("prompt start s p3", "", "prompt-started"),
        ("session plan s on", "", "plan-on"),
        ("session suspend s --cause x", "", "suspended"),
        ("session relocate s --begin --to b", "", "relocating"),
        ("session relocate s --abort", "", "relocation-aborted"),
        ("session restore s --begin", "", "restoring"),
        ("session restore s --end", "", "restored"),
        ("session close s", "", "closed"),
    ];
    for (n, (line, stdin, code)) in script.iter().enumerate() {
        let id = format!("call {n}");
        let args: Vec<&str> = line.split(' ').chain(["--request-id", &id]).collect();
        let run = || root.json_with_stdin(&args, stdin.as_bytes());
        let before = root.bytes();
        let first = run();
        assert_eq!(first.code(), *code, "{line}: {first}");
        let after = root.bytes();
        if *line != "session suspend s --cause x" {
            assert_ne!(before, after, "{line}: a call worth repeating changes something");
        }
        let again = run();
        assert_eq!((again.exit, &again.stdout), (first.exit, &first.stdout), "{line}");
        assert_eq!(root.bytes(), after, "{line}");
    }
}

#[test]
fn the_same_id_for_another_call_is_refused() {
    let root = TestRoot::new();
    let (_, p1) = Session::at_work(&root, "s");
    let claim = ["claim", "s", "--prompt", &p1, "--for", "30s"];
    let _ = root.json(&[&claim[..], &ID].concat()).is(0, "granted");
    let before = root.bytes();
    for other in [
        &["claim", "s", "--prompt", &p1, "--for", "31s"][..],
        &["claim", "s", "--prompt", "p1", "--for", "30s"],
        &["claim", "s"],
        &["drain", "s"],
        &["end-turn", "s"],
    ] {
        let out = root.json(&[other, &ID].concat()).is(10, "request-id-reused");
        if other[0] == "claim" {
            assert_eq!(out.get("claimed"), "false", "{out}");
        }
    }
    assert_eq!(root.bytes(), before);
    // Another session is another row: the id is new there.
    let _ = root.json(&[&["session", "open", "other"][..], &ID].concat()).is(0, "opened");
}

#[test]
fn a_grant_is_given_once() {
    let root = TestRoot::new();
    let (s, p1) = Session::at_work(&root, "s");
    let call = [&["--prompt", p1.as_str()][..], &ID].concat();
    let first = s.call("claim", &call).is(0, "granted");
    let after = root.bytes();
    let again = s.call("claim", &call).is(10, "already-granted");
    insta::assert_snapshot!(told(&again), @r#"10 {"ok":false,"command":"claim","code":"already-granted","claimed":false,"hasQueuedPrompt":false,"ticket":"tkt_fa93608d3808a42c","promptId":"prm_44ef219a1efd157c","attempt":1,"maxAttempts":2,"chain":3,"generation":1,"seq":4,"sessionId":"s","message":"this call was answered before, and that answer granted ticket tkt_fa93608d3808a42c, once","hint":"nobody may send on this answer; who knows that nothing was sent may say so: lychgate claim s --ticket tkt_fa93608d3808a42c --as unsent"}"#);
    assert_eq!((again.get("ticket"), again.get("claimed").as_str()), (first.get("ticket"), "false"));
    assert_eq!(root.bytes(), after);
    let text = root.run(&[&["claim", "s"][..], &call].concat());
    insta::assert_snapshot!(text, @"
    exit 10
    --- stderr
    lychgate claim: refused (already-granted): this call was answered before, and that answer granted ticket tkt_fa93608d3808a42c, once
    hint: nobody may send on this answer; who knows that nothing was sent may say so: lychgate claim s --ticket tkt_fa93608d3808a42c --as unsent
    ");
    // Who knows that nothing was sent says so, and the repeat still grants nothing.
    let _ = s.end(&first.get("ticket"), "unsent").is(0, "ticket-settled");
    let _ = s.call("claim", &call).is(10, "already-granted");
    assert_eq!(s.record()["tickets"], serde_json::json!([]));
}

#[test]
fn a_continuation_is_given_once_and_an_outer_hook_still_speaks() {
    let root = TestRoot::new();
    let (s, _) = Session::at_work(&root, "s");
    let first = s.call("end-turn", &ID).is(0, "continue");
    let again = s.call("end-turn", &ID).is(10, "already-granted");
    assert_eq!(again.get("ticket"), first.get("ticket"));
    assert_eq!((again.get("decision").as_str(), again.get("text").as_str()), ("allow", "null"), "{again}");
    let _ = s.end(&first.get("ticket"), "sent").is(0, "ticket-settled");
    let call = ["--external", "block", "--reason", "red", "--request-id", "another"];
    let _ = s.call("end-turn", &call).is(0, "continue");
    let again = s.call("end-turn", &call).is(10, "already-granted");
    assert_eq!((again.get("decision").as_str(), again.get("text").as_str()), ("continue", "red"), "{again}");
}

#[test]
fn an_item_is_handed_out_once() {
    let root = TestRoot::new();
    let s = Session::open(&root, "s");
    for queue in ["notify", "cron"] {
        let _ = s.call(queue, &["put", "--task", "b", "--id", "item"]).is(0, "queued");
        let take = ["take", "--request-id", queue];
        let first = s.call(queue, &take).is(0, "taken");
        let again = s.call(queue, &take).is(10, "already-granted");
        assert_eq!(again.get("id"), first.get("id"));
        assert!(again.get("message").ends_with("that answer handed out `item`, once"), "{again}");
        let _ = s.call(queue, &["ack", "item"]).is(0, "acknowledged");
    }
}

#[test]
fn a_call_is_repeated_after_its_process_has_died() {
    let root = TestRoot::new();
    let s = Session::open(&root, "s");
    let mut worker = Process::alive();
    let pid = worker.pid();
    let submit = ["prompt", "submit", "s", "--owner-pid", &pid, "--request-id", "r"];
    let first = root.json(&submit).is(0, "submitted");
    worker.die();
    assert_eq!(root.json(&submit).stdout, first.stdout);
    assert_eq!(s.record()["prompts"].as_array().unwrap().len(), 1);
}

#[test]
fn the_call_of_an_open_ticket_is_remembered_beyond_the_latest_64() {
    let root = TestRoot::new();
    let (s, p1) = Session::at_work(&root, "s");
    let call = ["--prompt", &p1, "--for", "5m", "--request-id", "grant"];
    let ticket = s.call("claim", &call).is(0, "granted").get("ticket");
    for _ in 0..64 {
        let _ = s.call("claim", &["--chain", "999"]).is(10, "unavailable");
    }
    assert_eq!(s.record()["requests"].as_array().unwrap().len(), 65);
    assert_eq!(s.call("claim", &call).is(10, "already-granted").get("ticket"), ticket);
}

#[test]
fn large_answers_do_not_fill_the_record() {
    let root = TestRoot::new();
    let s = Session::open(&root, "s");
    let text = "x".repeat(60_000);
    for round in 0..2 {
        for n in 0..10 {
            let _ = s.say(&format!("m{round}-{n}"), &text).is(0, "said");
        }
        let taken = s.call("drain", &[]).is(0, "drained");
        let parts = taken.json()["parts"].as_array().unwrap().clone();
        assert_eq!(parts.len(), 10);
        let ids: Vec<&str> = parts.iter().flat_map(|part| ["--ack", part["id"].as_str().unwrap()]).collect();
        let _ = s.call("drain", &ids).is(0, "acknowledged");
    }
    let size = std::fs::metadata(root.path().join("sessions/s/guard/session.json")).unwrap().len();
    assert!(size < 1 << 20, "the answer before the last is forgotten: {size} bytes");
}
