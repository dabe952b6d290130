//! Runs tests and collects what they found.

use crate::bus::DeviceBus;
use crate::device::TestedDevice;
use crate::limits::WriteLimits;
use crate::probe::{BusStep, Probe};
use crate::resume::RunStore;
use crate::test::{Group, Test, Verdict};
use std::time::{Duration, Instant};

/// The result of one test.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// The test.
    pub test: Test,
    /// The verdict on the device.
    pub verdict: Verdict,
    /// Each step that was taken.
    pub steps: Vec<BusStep>,
    /// How long it took.
    pub took: Duration,
}

/// The results of all tests.
#[derive(Clone, Debug, Default)]
pub struct Scorecard {
    /// In the order in which they were run.
    pub outcomes: Vec<Outcome>,
}

impl Scorecard {
    /// Returns how many outcomes of a group have a verdict of this name; of all groups without one.
    pub fn count(&self, group: Option<Group>, verdict: &str) -> usize {
        let of_group = |outcome: &&Outcome| group.is_none_or(|group| outcome.test.group == group);
        let outcomes = self.outcomes.iter().filter(of_group);
        outcomes.filter(|outcome| outcome.verdict.name() == verdict).count()
    }

    /// Returns whether a test failed.
    pub fn has_failures(&self) -> bool {
        self.count(None, "fail") > 0
    }
}

/// Tests, and how far they go.
pub struct CheckPlan<'a> {
    /// The tests, in the order in which they are run.
    pub tests: &'a [Test],
    /// How far those go that write.
    pub writes: WriteLimits,
    /// Keeps the pass over all blocks, so that it can be continued after an interruption.
    pub store: Option<&'a mut dyn RunStore>,
}

impl<'a> CheckPlan<'a> {
    /// Returns a plan of these tests with default limits.
    pub fn of(tests: &'a [Test]) -> Self {
        Self { tests, writes: WriteLimits::default(), store: None }
    }
}

/// Progress while tests are run.
#[derive(Clone, Copy, Debug)]
pub enum CheckEvent<'a> {
    /// A long test has come so far.
    Progress {
        /// Its name.
        test: &'static str,
        /// Parts that are done.
        done: u64,
        /// All parts.
        total: u64,
    },
    /// A test has ended.
    Completed(&'a Outcome),
}

/// Runs tests one after the other. Each begins on a device without transfers in flight; one that has left the device
/// stuck is followed by a port reset. After a disconnect the rest is not tested. `watch` sees each event, and returns
/// whether to go on.
pub fn check(
    bus: &mut dyn DeviceBus,
    device: &TestedDevice,
    mut plan: CheckPlan<'_>,
    mut watch: impl FnMut(CheckEvent<'_>) -> bool,
) -> Scorecard {
    let mut scorecard = Scorecard::default();
    for test in plan.tests {
        let began = Instant::now();
        let (verdict, steps) = if bus.is_gone() {
            (Verdict::NotTested("the device is disconnected".into()), Vec::new())
        } else {
            let mut progress = |done, total| watch(CheckEvent::Progress { test: test.id, done, total });
            let mut probe = Probe::new(bus, device, plan.writes);
            probe.run.progress = Some(&mut progress);
            probe.run.saved_in = plan.store.as_mut().map(|store| &mut **store as &mut dyn RunStore);
            let verdict = test.run.on(&mut probe);
            probe.end_all();
            (verdict, probe.into_steps())
        };
        let outcome = Outcome { test: *test, verdict, steps, took: began.elapsed() };
        let goes_on = watch(CheckEvent::Completed(&outcome));
        scorecard.outcomes.push(outcome);
        if !goes_on {
            break;
        }
    }
    scorecard
}
