//! A ticket has one end, whoever says it, or nobody.

use super::{Session, told};
use crate::common::TestRoot;
use crate::kit::Process;

#[test]
fn a_ticket_is_ended_once() {
    let root = TestRoot::new();
    let (s, p1) = Session::at_work(&root, "s");
    let ticket = s.ticket(&p1);
    insta::assert_snapshot!(told(&s.end(&ticket, "sent").is(0, "ticket-settled")), @r#"0 {"ok":true,"command":"claim","code":"ticket-settled","ticketId":"tkt_f689a3a85894f1ed","end":"sent","attempt":1,"attempts":1,"maxAttempts":2,"unfinishedCount":1,"sessionId":"s","message":"ticket tkt_f689a3a85894f1ed: sent"}"#);
    let before = s.meaning();
    insta::assert_snapshot!(told(&s.end(&ticket, "sent").is(10, "ticket-ended")), @r#"10 {"ok":false,"command":"claim","code":"ticket-ended","ticketId":"tkt_f689a3a85894f1ed","end":"sent","sessionId":"s","message":"ticket tkt_f689a3a85894f1ed has ended at 2026-01-01T00:00:05.000Z: sent","hint":"if its stream runs, cut it; claim again before another one"}"#);
    let _ = s.end(&ticket, "unsent").is(10, "ticket-ended");
    let _ = s.call("claim", &["--ticket", &ticket, "--stage", "late"]).is(10, "ticket-ended");
    let _ = s.end("tkt_0123456789abcdef", "sent").is(10, "no-such-ticket");
    assert_eq!(s.meaning(), before, "O22, O29");
    let other = Session::open(&root, "other");
    let _ = other.end(&ticket, "unsent").is(10, "no-such-ticket");
}

#[test]
fn what_was_not_sent_is_free_and_what_started_is_charged() {
    for (end, attempts, paused) in [("unsent", 0, false), ("sent", 1, false), ("failed-after-start", 1, true)]
    {
        let root = TestRoot::new();
        let (s, p1) = Session::at_work(&root, "s");
        let ticket = s.ticket(&p1);
        assert_eq!(s.attempts(), 0, "O31: a grant alone costs nothing");
        let _ = s.end(&ticket, end).is(0, "ticket-settled");
        assert_eq!(s.attempts(), attempts, "O31: {end}");
        assert_eq!(s.record()["chain"]["retryPaused"], paused, "{end}");
    }
}

#[test]
fn a_ticket_that_nobody_ends_counts_as_sent() {
    let root = TestRoot::new();
    let (s, p1) = Session::at_work(&root, "s");
    let ticket = s.call("claim", &["--prompt", &p1, "--for", "30s"]).is(0, "granted").get("ticket");
    let _ = s.submit("p2");
    let _ = s.finish("p1", "completed");
    root.later(20_000);
    let open = s.prompt("start", &["p2"]).is(12, "ticket-open");
    assert!(open.get("leftMs").parse::<u64>().unwrap() < 10_000, "{open}");
    root.later(10_000);
    let _ = s.prompt("start", &["p2"]).is(0, "prompt-started");
    let record = s.record();
    assert_eq!(
        (&record["tickets"], &record["endedTickets"][0]["end"]),
        (&"[]".parse().unwrap(), &"lapsed".into())
    );
    let late = s.end(&ticket, "sent").is(10, "ticket-ended");
    insta::assert_snapshot!(told(&late), @r#"10 {"ok":false,"command":"claim","code":"ticket-ended","ticketId":"tkt_f689a3a85894f1ed","end":"lapsed","sessionId":"s","message":"ticket tkt_f689a3a85894f1ed has ended at 2026-01-01T00:00:08.000Z: lapsed","hint":"if its stream runs, cut it; claim again before another one"}"#);
}

#[test]
fn a_restart_of_the_machine_brings_no_ticket_back_to_life() {
    let root = TestRoot::new();
    let (s, p1) = Session::at_work(&root, "s");
    let _ = s.call("claim", &["--prompt", &p1, "--for", "5m"]).is(0, "granted");
    root.reboot();
    let _ = s.claim(&p1);
    let record = s.record();
    assert_eq!(record["endedTickets"][0]["end"], "lapsed", "O21");
    assert_eq!(record["chain"]["attempts"], 1);
}

#[test]
fn a_dead_holders_ticket_counts_as_sent() {
    let root = TestRoot::new();
    let (s, p1) = Session::at_work(&root, "s");
    let mut sender = Process::alive();
    let claim = ["--prompt", &p1, "--owner-pid", &sender.pid(), "--for", "5m"];
    let _ = s.call("claim", &claim).is(0, "granted");
    let _ = s.submit("p2");
    let _ = s.finish("p1", "completed");
    let _ = s.prompt("start", &["p2"]).is(12, "ticket-open");
    sender.die();
    let _ = s.prompt("start", &["p2"]).is(0, "prompt-started");
    assert_eq!(s.record()["endedTickets"][0]["end"], "lapsed", "O21");
}

#[test]
fn a_process_that_cannot_be_recorded_is_refused() {
    let root = TestRoot::new();
    let (s, p1) = Session::at_work(&root, "s");
    let before = root.bytes();
    let out = s.call("claim", &["--prompt", &p1, "--owner-pid", "4194304"]).is(10, "owner-pid-unreadable");
    assert_eq!(out.get("claimed"), "false", "{out}");
    assert_eq!(root.bytes(), before);
}

#[test]
fn a_holder_who_is_still_at_it_says_so() {
    let root = TestRoot::new();
    let (s, p1) = Session::at_work(&root, "s");
    let ticket = s.call("claim", &["--prompt", &p1, "--for", "10s"]).is(0, "granted").get("ticket");
    for stage in ["draining", "compressing"] {
        root.later(8_000);
        let args = ["--ticket", &ticket, "--stage", stage, "--for", "10s"];
        let _ = s.call("claim", &args).is(0, "ticket-renewed");
        assert_eq!(s.record()["tickets"][0]["stage"], stage, "O28");
    }
    let _ = s.end(&ticket, "sent").is(0, "ticket-settled");
}

#[test]
fn a_release_voids_the_open_tickets_of_its_owner() {
    let root = TestRoot::new();
    let (s, p1) = Session::at_work(&root, "s");
    let (one, two) = (s.ticket(&p1), s.ticket(&p1));
    let released = s.call("release", &["--prompt", &p1]).is(0, "released");
    assert_eq!(released.get("openTickets"), "2", "O17: {released}");
    assert_eq!(s.cause(), "queue-released");
    let _ = s.call("claim", &["--ticket", &one, "--stage", "x"]).is(10, "ticket-void");
    let late = s.end(&one, "sent").is(10, "ticket-void");
    insta::assert_snapshot!(told(&late), @r#"10 {"ok":false,"command":"claim","code":"ticket-void","ticketId":"tkt_f689a3a85894f1ed","reason":"released","sessionId":"s","message":"ticket tkt_f689a3a85894f1ed was void when it was sent: released","hint":"cut its stream now and keep nothing of it; it is charged all the same"}"#);
    let record = s.record();
    assert!(record["wait"].is_null(), "O18");
    assert_eq!(record["released"], serde_json::json!([p1]), "O17: the other one is still open");
    assert_eq!(record["chain"]["attempts"], 1, "it is charged all the same");
    let _ = s.end(&two, "unsent").is(0, "ticket-settled");
    assert!(s.record()["released"].is_null(), "O20");
}

#[test]
fn a_release_names_who_waits() {
    let root = TestRoot::new();
    let (s, p1) = Session::at_work(&root, "s");
    let p2 = s.submit("p2").get("promptId");
    let _ = s.claim(&p1).is(10, "prompt-queued");
    let before = s.meaning();
    let no = s.call("release", &["--prompt", &p2]).is(10, "no-match");
    assert_eq!(no.get("released"), "false");
    let _ = s.call("release", &["--prompt", "prm_0123456789abcdef"]).is(10, "no-match");
    for nobody in [&["--prompt", ""][..], &[], &["--prompt", "p1"]] {
        let _ = s.call("release", nobody).is(64, "usage");
    }
    assert_eq!(s.meaning(), before, "O13, O14");
    let _ = s.call("release", &["--prompt", &p1]).is(0, "released");
    assert!(s.record()["wait"].is_null(), "O13");
    assert_eq!(s.cause(), "queue-released", "O13");
}

#[test]
fn a_suspension_voids_what_is_being_sent() {
    let root = TestRoot::new();
    let (s, p1) = Session::at_work(&root, "s");
    let ticket = s.ticket(&p1);
    let _ = s.session("suspend", &["--cause", "stop"]).is(0, "suspended");
    let void = s.end(&ticket, "sent").is(10, "ticket-void");
    assert_eq!(void.get("reason"), "suspended", "O38: {void}");
}

#[test]
fn a_sender_that_always_fails_does_not_try_for_ever() {
    let root = TestRoot::new();
    let (s, p1) = Session::at_work(&root, "s");
    for _ in 0..8 {
        let ticket = s.ticket(&p1);
        let _ = s.end(&ticket, "unsent").is(0, "ticket-settled");
    }
    assert_eq!(s.claim(&p1).is(10, "unavailable").get("reason"), "suspended");
    assert_eq!(s.cause(), "sends-failed");
}

#[test]
fn what_the_person_typed_meanwhile_is_kept_with_the_end() {
    let root = TestRoot::new();
    let (s, p1) = Session::at_work(&root, "s");
    let ticket = s.ticket(&p1);
    let args = ["--ticket", &ticket, "--as", "unsent", "--text-kept", "-"];
    let _ = s.tell("claim", &args, "wait, not like that").is(0, "ticket-settled");
    let again = s.call("drain", &["--again"]).is(0, "drained");
    assert_eq!(again.get("parts.0.text"), "wait, not like that");
    assert_eq!(again.get("parts.0.kind"), "user");
}
