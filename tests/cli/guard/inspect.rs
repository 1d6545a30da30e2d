//! `inspect --session`: who waits for whom, what is under way, and what a claim would be answered, and why.

use serde_json::Value;

use super::Session;
use crate::common::TestRoot;
use crate::kit::untouched;

fn inspect(root: &TestRoot, more: &[&str]) -> Value {
    root.json(&[&["inspect", "--session", "s"], more].concat()).is(0, "ok").json()
}

#[test]
fn a_session_is_shown_with_its_order_and_nothing_is_changed() {
    let root = TestRoot::new();
    let (s, p1) = Session::at_work(&root, "s");
    let ticket = s.ticket(&p1);
    let _ = s.submit("p2");
    let _ = s.claim(&p1).is(10, "prompt-queued");
    let _ = s.say("m1", "a private text").is(0, "said");
    let before = untouched(&root);
    let told = inspect(&root, &["--explain", "--history"]);
    assert_eq!(untouched(&root), before);
    assert_eq!(told["prompts"][0]["promptId"], p1.as_str());
    let seqs: Vec<u64> = ["/prompts/0/seq", "/tickets/0/seq", "/prompts/1/seq", "/wait/seq"]
        .map(|path| told.pointer(path).and_then(Value::as_u64).unwrap())
        .into();
    assert!(seqs.is_sorted(), "O30: {seqs:?}");
    assert_eq!(told["wait"]["waitsFor"], told["prompts"][1]["promptId"]);
    assert_eq!(
        (&told["tickets"][0]["ticket"], &told["tickets"][0]["leftMs"]),
        (&ticket.into(), &56_000.into())
    );
    assert_eq!(told["prompts"][0]["ageSeconds"], 6);
    assert_eq!(told["claim"]["running"]["code"], "prompt-queued");
    assert_eq!(told["claim"]["ownerless"]["reason"], "prompt-live");
    assert!(!told.to_string().contains("a private text"), "{told}");
    assert!(told["history"].as_array().unwrap().len() > 5);
    insta::assert_snapshot!(root.run(&["inspect", "--session", "s"]), @"
    exit 0
    --- stdout
    root       [DIR]/root
    session    s
    state      open, generation 1, guard on
    prompt     prm_44ef219a1efd157c running `p1`, ordinary, seq 2, 7 s old
    prompt     prm_080127a3cb021db9 queued `p2`, ordinary, seq 5, 4 s old
    wait       prm_44ef219a1efd157c has yielded to prm_080127a3cb021db9 since 2026-01-01T00:00:06.000Z
    ticket     tkt_f689a3a85894f1ed of prm_44ef219a1efd157c, continuation 1, 55000 ms left
    chain      1 unfinished, 0 of 2 continuations charged, armed, awaiting a prompt
    texts      1 typed, 0 not acknowledged
    claim      prompt-queued: prompt prm_080127a3cb021db9 waits and goes first
    ownerless  unavailable: prompt prm_44ef219a1efd157c is running; an automatic turn waits
    obstacle   prompt prm_44ef219a1efd157c has yielded to a queued prompt since 2026-01-01T00:00:06.000Z
      lifted by the queued prompt runs, or is removed
    ");
}

#[test]
fn what_stands_in_the_way_is_told_with_what_lifts_it() {
    let root = TestRoot::new();
    let (s, p1) = Session::at_work(&root, "s");
    assert_eq!(inspect(&root, &[])["obstacles"], serde_json::json!([]));
    assert_eq!(inspect(&root, &[])["claim"]["running"]["code"], "granted");
    let _ = s.session("suspend", &["--cause", "enough"]).is(0, "suspended");
    let _ = s.claim(&p1).is(10, "unavailable");
    let told = inspect(&root, &[]);
    assert_eq!(told["chain"]["suspended"]["cause"], "asked");
    assert_eq!(told["chain"]["suspended"]["lifts"], "a new ordinary prompt that runs, and nothing else");
    assert_eq!(told["claim"]["running"]["reason"], "suspended");
    assert_eq!(told["refused"]["suspended"]["count"], 1);
    insta::assert_snapshot!(root.run(&["inspect", "--session", "s"]), @"
    exit 0
    --- stdout
    root       [DIR]/root
    session    s
    state      open, generation 1, guard on
    prompt     prm_44ef219a1efd157c running `p1`, ordinary, seq 2, 7 s old
    chain      0 unfinished, 0 of 2 continuations charged
    suspended  asked (enough) since 2026-01-01T00:00:06.000Z
    refused    1 time(s): suspended
    claim      unavailable: suspended since 2026-01-01T00:00:06.000Z: asked (enough)
    ownerless  unavailable: prompt prm_44ef219a1efd157c is running; an automatic turn waits
    obstacle   suspended since 2026-01-01T00:00:06.000Z: asked (enough)
      lifted by a new ordinary prompt that runs, and nothing else
    ");
}

#[test]
fn a_ticket_past_its_time_is_shown_as_over() {
    let root = TestRoot::new();
    let (s, p1) = Session::at_work(&root, "s");
    let _ = s.ticket(&p1);
    root.reboot();
    assert_eq!(inspect(&root, &[])["tickets"][0]["leftMs"], 0);
}

#[test]
fn what_a_caller_chose_reaches_no_terminal_raw() {
    let root = TestRoot::new();
    let s = Session { root: &root, id: "s" };
    let _ = s.session("open", &["--guard"]).is(0, "opened");
    let _ = s.submit("\u{202e}evil");
    let _ = s.session("suspend", &["--cause", "a\u{1b}[2J\nb"]).is(0, "suspended");
    let out = root.run(&["inspect", "--session", "s", "--history"]);
    assert!(!out.stdout.contains(['\u{1b}', '\u{202e}']), "{out}");
}

#[test]
fn the_list_of_tasks_counts_sessions() {
    let root = TestRoot::new();
    let _ = Session::open(&root, "s");
    let _ = Session::open(&root, "t");
    assert_eq!(root.json(&["inspect"]).is(0, "ok").get("sessions"), "2");
    for wrong in [&["t1"][..], &["--run", "r"], &["--stuck"], &["--expect", "live"]] {
        let _ = root.json(&[&["inspect", "--session", "s"], wrong].concat()).is(64, "usage");
    }
}
