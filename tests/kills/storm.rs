//! The storm: fifty kills.

use std::time::Duration;

use crate::books;
use crate::story::{STEPS, Shell, Story};

/// How many calls a shell makes before it is killed, at most; and how long after that call began.
const CALLS_MAX: u64 = 12;
const AFTER_CALL: Duration = Duration::from_millis(25);
/// How long after the first new row was there, which its maker then did not launch, or just did.
const AFTER_ROW: Duration = Duration::from_millis(10);

/// Draws, one after the other, from a seed (`SplitMix64`).
struct Draws(u64);

impl Draws {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % bound
    }

    fn time(&mut self, below: Duration) -> Duration {
        Duration::from_micros(self.below(u64::try_from(below.as_micros()).unwrap()))
    }
}

fn from_environment(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|text| text.parse().unwrap())
}

/// A seed, which the output of a failing test names.
fn draws(what: &str) -> Draws {
    let now = std::time::UNIX_EPOCH.elapsed().unwrap();
    let seed = from_environment("LYCHGATE_KILLS_SEED").unwrap_or(u64::from(now.subsec_nanos()));
    println!("{what}: the same draws again with LYCHGATE_KILLS_SEED={seed}");
    Draws(seed)
}

/// When a shell is killed.
#[derive(Debug)]
enum Moment {
    /// Some time after it began its n-th call.
    Call { n: usize, after: Duration },
    /// Some time after there were this many rows.
    Row { n: usize, after: Duration },
}

impl Moment {
    /// Two of three kills come with a call; the third comes where few would: between a child and its launch.
    fn draw(draws: &mut Draws, n_rows: usize) -> Self {
        if draws.below(3) > 0 {
            let n = usize::try_from(1 + draws.below(CALLS_MAX)).unwrap();
            Self::Call { n, after: draws.time(AFTER_CALL) }
        } else {
            Self::Row { n: n_rows + 1, after: draws.time(AFTER_ROW) }
        }
    }

    fn is_reached(&self, story: &Story, shell: &str) -> bool {
        match self {
            Self::Call { n, .. } => story.told(&["call", shell]).len() >= *n,
            Self::Row { n, .. } => story.n_rows() >= *n,
        }
    }

    fn after(&self) -> Duration {
        let (Self::Call { after, .. } | Self::Row { after, .. }) = self;
        *after
    }
}

/// How a shell ended.
enum End {
    Killed,
    Finished,
}

/// Lets a shell run until its moment, or until it has finished.
fn run_until(story: &mut Story, mut shell: Shell, moment: Option<&Moment>) -> End {
    let pid = shell.pid();
    let finished = story.until("the end of a shell", |story| {
        if let Some(status) = shell.ended() {
            assert!(status.success(), "it gave up\n{}", story.everything());
            return Some(true);
        }
        moment.is_some_and(|moment| moment.is_reached(story, &pid)).then_some(false)
    });
    if finished {
        return End::Finished;
    }
    std::thread::sleep(moment.map_or(Duration::ZERO, Moment::after));
    let finished_meanwhile = shell.ended().is_some_and(|status| status.success());
    shell.kill();
    if finished_meanwhile { End::Finished } else { End::Killed }
}

/// Kills shells until there were `n_kills`, over as many runs as it takes, `n_shells` at a time on each. Each run is
/// resumed until it is completed, and then looked at.
fn storm(what: &str, n_kills: u64, n_shells: usize) {
    let n_kills = from_environment("LYCHGATE_KILLS").unwrap_or(n_kills);
    let mut draws = draws(what);
    let (mut killed, mut n_runs) = (0, 0);
    while killed < n_kills {
        n_runs += 1;
        let mut story = Story::new();
        let run = format!("r{n_runs}");
        let mut finished = false;
        while !finished {
            let (work_time, n_rows) = (draws.time(2 * AFTER_CALL), story.n_rows());
            let shells: Vec<Shell> = (0..n_shells).map(|_| story.resume(&run, &STEPS, work_time)).collect();
            for shell in shells {
                let moment = Moment::draw(&mut draws, n_rows);
                match run_until(&mut story, shell, (killed < n_kills).then_some(&moment)) {
                    End::Killed => {
                        killed += 1;
                        println!("{run}: killed at {moment:?}");
                    }
                    End::Finished => finished = true,
                }
            }
            books::sound(&story);
        }
        completed(&mut story, &run);
    }
    println!("{killed} kills over {n_runs} runs");
}

/// A run that was completed, and is resumed once more: nothing changes, and nothing is left over.
fn completed(story: &mut Story, run: &str) {
    story.until_all_agents_are_gone();
    books::completed(story, run, &STEPS);
    let before = story.root.bytes();
    let shell = story.resume(run, &STEPS, Duration::ZERO);
    assert!(matches!(run_until(story, shell, None), End::Finished));
    assert_eq!(before, story.root.bytes(), "resuming what is completed changes nothing");
    assert_eq!(books::leftovers(story), Vec::<String>::new());
}

/// Rules 10, 74, 75 and 99.
#[test]
fn a_shell_killed_at_any_moment_resumes_its_run_and_no_step_is_done_twice() {
    storm("one shell", 25, 1);
}

/// Rules 10, 75 and 99; hazard H1.
#[test]
fn two_shells_at_once_killed_at_any_moment_do_no_step_twice_either() {
    storm("two shells", 25, 2);
}
