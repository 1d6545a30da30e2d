use std::process::{Child, Command};

use super::*;

const MACHINE: &str = "0123456789abcdef0123456789abcdef";
const BOOT: &str = "f603140e-79c6-4908-a56f-9b9c09c2f47a";

fn sleeper() -> Child {
    Command::new("sleep").arg("600").spawn().expect("`sleep` can be started")
}

fn end(child: &mut Child) {
    child.kill().expect("a child can be killed");
    child.wait().expect("a child can be reaped");
}

fn surroundings() -> Surroundings {
    os::surroundings()
}

/// A record and surroundings under which only the kernel's answer is missing for a proof of death.
fn everything_known() -> (ProcessRef, Surroundings) {
    let here = Surroundings {
        machine_id: Some(MACHINE.to_owned()),
        boot_id: Some(BOOT.to_owned()),
        pid_namespace: Some("pid:[4026531836]".to_owned()),
        time_namespace: Some("time:[4026531834]".to_owned()),
        proc: surroundings().proc,
    };
    let process = ProcessRef {
        pid: std::process::id(),
        start_ticks: Some(1),
        machine_id: here.machine_id.clone(),
        boot_id: here.boot_id.clone(),
        pid_namespace: here.pid_namespace.clone(),
        time_namespace: here.time_namespace.clone(),
        extra: crate::protocol::row::Extra::new(),
    };
    (process, here)
}

fn absent(_: u32) -> Presence {
    Presence::Absent
}

fn present(_: u32) -> Presence {
    Presence::Present
}

type Change = fn(&mut ProcessRef, &mut Surroundings);

fn stat_line(name: &[u8]) -> Vec<u8> {
    let mut line = b"4711 (".to_vec();
    line.extend_from_slice(name);
    line.extend_from_slice(b") S 1 4711 4711 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 987654 10 11 12\n");
    line
}

#[test]
fn odd_command_names_do_not_shift_the_fields() {
    let names: [&[u8]; 8] = [
        b"sleep",
        b"a) R 1 2",
        b"a b  c",
        b"line\nbreak) Z 1",
        b"",
        b"))))",
        b"(sd-pam)",
        b"\xff\xfe) X \x80",
    ];
    for name in names {
        let expected = Some(Stat { state: 'S', start_ticks: 987_654 });
        assert_eq!(parse_stat(4711, &stat_line(name)), expected, "{}", name.escape_ascii());
    }
}

#[test]
fn a_damaged_stat_is_not_understood() {
    assert_eq!(parse_stat(4712, &stat_line(b"sleep")), None, "another process");
    for line in ["", ")", "4711", "4711 (a)", "4711 (a) ", "4711 (a) S", "4711 (a) SS 1 2", "4711 (a)S 1"] {
        assert_eq!(parse_stat(4711, line.as_bytes()), None, "{line:?}");
    }
    let line = stat_line(b"a");
    let cut = line.iter().position(|byte| *byte == b'9').expect("the start time is in it");
    assert_eq!(parse_stat(4711, line.get(..cut).expect("it is in range")), None);
}

#[test]
fn ids_of_the_wrong_form_are_none() {
    assert!(is_machine_id(MACHINE));
    for text in ["", "uninitialized", &"0".repeat(32), &MACHINE.to_uppercase(), &MACHINE[1..], BOOT] {
        assert!(!is_machine_id(text), "{text:?}");
    }
    assert!(is_uuid(BOOT));
    for text in ["", MACHINE, &BOOT.to_uppercase(), &BOOT.replace('-', "0"), &BOOT[1..]] {
        assert!(!is_uuid(text), "{text:?}");
    }
}

#[test]
fn each_proof_of_death_needs_each_of_its_conditions() {
    let for_absence: [(&str, Change); 11] = [
        ("recorded machine", |process, _| process.machine_id = None),
        ("machine here", |_, here| here.machine_id = None),
        ("another machine", |_, here| here.machine_id = Some(MACHINE.replace('0', "1"))),
        ("odd machines", |process, here| {
            process.machine_id = Some("uninitialized".to_owned());
            here.machine_id = Some("uninitialized".to_owned());
        }),
        ("recorded boot", |process, _| process.boot_id = None),
        ("boot here", |_, here| here.boot_id = None),
        ("odd boot", |process, _| process.boot_id = Some("none".to_owned())),
        ("recorded pid namespace", |process, _| process.pid_namespace = None),
        ("pid namespace here", |_, here| here.pid_namespace = None),
        ("another pid namespace", |_, here| here.pid_namespace = Some("pid:[1]".to_owned())),
        ("empty pid namespaces", |process, here| {
            process.pid_namespace = Some(String::new());
            here.pid_namespace = Some(String::new());
        }),
    ];
    let (process, here) = everything_known();
    assert!(judge(&process, &here, absent).is_dead());
    assert!(judge(&process, &here, present).is_dead(), "it started at another time");
    for (dropped, change) in for_absence {
        let (mut process, mut here) = everything_known();
        change(&mut process, &mut here);
        for presence in [absent, present] {
            assert!(matches!(judge(&process, &here, presence), Life::Unknown(_)), "without {dropped}");
        }
    }
    let for_another_start: [(&str, Change); 5] = [
        ("start time", |process, _| process.start_ticks = None),
        ("recorded time namespace", |process, _| process.time_namespace = None),
        ("time namespace here", |_, here| here.time_namespace = None),
        ("the same time namespace", |_, here| here.time_namespace = Some("time:[1]".to_owned())),
        ("a /proc of ours", |_, here| here.proc = None),
    ];
    for (dropped, change) in for_another_start {
        let (mut process, mut here) = everything_known();
        change(&mut process, &mut here);
        assert!(matches!(judge(&process, &here, present), Life::Unknown(_)), "without {dropped}");
        assert!(judge(&process, &here, absent).is_dead(), "ESRCH needs no {dropped}");
    }
    let unclear = |_| Presence::Unclear("no answer".to_owned());
    assert!(matches!(judge(&process, &here, unclear), Life::Unknown(_)));
}

#[test]
fn another_boot_is_death_only_on_the_same_machine() {
    let other_boot = Some(BOOT.replace('f', "e"));
    let (mut process, here) = everything_known();
    process.boot_id.clone_from(&other_boot);
    process.pid_namespace = None;
    process.time_namespace = None;
    assert!(judge(&process, &here, present).is_dead(), "{:?}", judge(&process, &here, present));
    process.machine_id = Some(MACHINE.replace('0', "1"));
    assert!(matches!(judge(&process, &here, present), Life::Unknown(_)));
}

#[test]
fn nobody_is_proven_dead_for_a_root_that_others_may_share() {
    let here = Here::new();
    let mut child = sleeper();
    let process = describe(child.id(), &here).expect("a child is readable");
    assert!(matches!(observe(&process, &here, false), Life::Alive(_)));
    end(&mut child);
    assert!(matches!(observe(&process, &here, false), Life::Unknown(_)));
    assert!(observe(&process, &here, true).is_dead());
}

#[test]
fn this_process_is_alive() {
    let here = Here::new();
    let process = describe(std::process::id(), &here).expect("this process is readable");
    assert_eq!(process.boot_id.as_deref(), here.boot_id());
    assert!(process.start_ticks.is_some() && process.pid_namespace.is_some());
    let life = observe(&process, &Here::new(), true);
    assert!(matches!(life, Life::Alive(_)), "{life:?}");
}

#[test]
fn a_process_with_another_start_time_is_a_later_one() {
    let here = Here::new();
    let mut process = describe(std::process::id(), &here).expect("this process is readable");
    process.start_ticks = process.start_ticks.map(|ticks| ticks - 1);
    let life = observe(&process, &here, true);
    assert!(life.is_dead(), "{life:?}");
}

#[test]
fn a_zombie_is_neither_recorded_nor_proven_dead_until_it_is_reaped() {
    let here = Here::new();
    let mut child = sleeper();
    let process = describe(child.id(), &here).expect("a child is readable");
    child.kill().expect("a child can be killed");
    let ended = ProcessUnreadable::Ended { pid: child.id() };
    while describe(child.id(), &here) != Err(ended.clone()) {
        std::thread::yield_now();
    }
    let life = observe(&process, &here, true);
    assert!(matches!(life, Life::Unknown(_)) && life.why().contains("zombie"), "{life:?}");
    child.wait().expect("a child can be reaped");
    let life = observe(&process, &here, true);
    assert!(life.is_dead(), "{life:?}");
    let gone = ProcessUnreadable::NoSuchProcess { pid: process.pid };
    assert_eq!(describe(process.pid, &here), Err(gone));
}

#[test]
fn what_is_no_process_id_is_refused_and_proves_nothing() {
    let here = Here::new();
    for pid in [0, u32::MAX, u32::try_from(i32::MAX).expect("it fits") + 1] {
        assert!(matches!(describe(pid, &here), Err(ProcessUnreadable::Unreadable { .. })), "{pid}");
        let mut process = describe(std::process::id(), &here).expect("this process is readable");
        process.pid = pid;
        assert!(matches!(observe(&process, &here, true), Life::Unknown(_)), "{pid}");
    }
}

#[test]
fn a_thread_is_not_an_owner() {
    let here = Here::new();
    let pid = std::process::id();
    let refused = std::thread::scope(|scope| {
        let look = || {
            let number = u32::try_from(rustix::thread::gettid().as_raw_nonzero().get());
            let number = number.expect("thread ids are positive");
            (number, describe(number, &here))
        };
        scope.spawn(look).join().expect("the thread ends")
    });
    let (number, refused) = refused;
    assert_eq!(refused, Err(ProcessUnreadable::Thread { pid: number, process: pid }));
}
