use super::*;
use proptest::prelude::*;

const FILE: &str = "\
Version 1.1.0 
'TEST SETUP ====================================================================
'Test Description
\t
'Run Time
'\thours      minutes    seconds
\t0          1          30
'Ramp Up Time (s)
\t5
'Default Disk Workers to Spawn
\tNUMBER_OF_CPUS
'Queue Depth Cycling
'\tstart      end        step       step type
\t1          32         2          EXPONENTIAL
'Test Type
\tNORMAL
'END test setup
'RESULTS DISPLAY ===============================================================
'Bar chart 1 statistic
\tTotal I/Os per Second
'END results display
'ACCESS SPECIFICATIONS =========================================================
'Access specification name,default assignment
\t4 KiB; 100% Read, random,NONE
'size,% of size,% reads,% random,delay,burst,align,reply
\t4096,100,100,100,0,1,4096,0
'Access specification name,default assignment
\tMixed,ALL
'size,% of size,% reads,% random,delay,burst,align,reply
\t8192,60,80,100,0,1,0,0
\t65536,40,80,0,0,1,65536,0
'END access specifications
'MANAGER LIST ==================================================================
'Manager ID, manager name
\t1,HERE
'Manager network address
\t
'Worker
\tWorker 1
'Worker type
\tDISK
'Default target settings for worker
'Number of outstanding IOs,test connection rate,transactions per connection,use fixed seed,fixed seed value
\t16,DISABLED,1,DISABLED,0
'Disk maximum size,starting sector,Data pattern
\t2048,8,0
'End default target settings for worker
'Assigned access specs
\tMixed
'End assigned access specs
'Target assignments
'Target
\tC: \"\"
'Target type
\tDISK
'End target
'End target assignments
'End worker
'End manager
'END manager list
Version 1.1.0 
";

#[track_caller]
fn refused(from: &str, to: &str) -> JobFileError {
    assert!(FILE.contains(from), "{from} is in the file");
    parse("file", &FILE.replacen(from, to, 1)).expect_err("it cannot be understood")
}

#[test]
fn a_saved_file_becomes_the_assigned_job() {
    let workload = parse("a.icf", FILE).expect("it is understood");
    let [job] = &workload.jobs[..] else { panic!("{workload:?}") };
    assert_eq!((job.label.as_str(), job.depth), ("Mixed", 16));
    let small = AccessSpec { percent: 60, align: Align::Block, ..AccessSpec::all(8192, 80, 100) };
    assert_eq!(job.specs, [small, AccessSpec { percent: 40, ..AccessSpec::all(65_536, 80, 0) }]);
    assert_eq!((job.run, job.warm_up), (Some(Duration::from_secs(90)), Some(Duration::from_secs(5))));
    assert_eq!((job.span_bytes, job.offset_bytes), (Some(1 << 20), 4096));
    assert_eq!(job.fill, Some(Fill::Repeated));
}

#[test]
fn a_cycle_of_depths_becomes_a_job_each() {
    let text = FILE.replace("\tNORMAL", "\tCYCLE_OUTSTANDING_IOS");
    let jobs = parse("", &text).expect("it is understood").jobs;
    assert_eq!(jobs.iter().map(|job| job.depth).collect::<Vec<_>>(), [1, 2, 4, 8, 16, 32]);
}

#[test]
fn without_assignment_all_specifications_run() {
    let text = FILE.replace("'Assigned access specs\n\tMixed\n", "");
    let jobs = parse("", &text).expect("it is understood").jobs;
    assert_eq!(
        jobs.iter().map(|job| job.label.as_str()).collect::<Vec<_>>(),
        ["4 KiB; 100% Read, random", "Mixed"]
    );
}

#[test]
fn an_unsupported_line_is_an_error_with_its_number() {
    let error = refused("4096,100,100,100,0,1,4096,0", "4096,100,100,100,5,1,4096,0");
    assert_eq!((error.line, error.text.as_str()), (26, "4096,100,100,100,5,1,4096,0"));
    assert_eq!(refused("4096,100,100,100,0", "4096,100,101,100,0").line, 26);
    assert_eq!(refused("4096,100,100,100,0", "0,100,100,100,0").line, 26);
    assert_eq!(refused("8192,60", "8192,61").reason, "the access percentages add up to 101 %");
    assert_eq!(refused("\tNORMAL", "\tCYCLE_TARGETS").line, 16);
    assert_eq!(refused("'End worker\n", "'Worker\n\tWorker 2\n").line, 58);
    assert_eq!(refused("\tDISK\n'Default", "\tNETWORK,TCP\n'Default").line, 41);
    assert_eq!(parse("", "IOPS 1\n").expect_err("no section").line, 1);
    assert_eq!(refused("2048,8,0", "2048,8,banana").line, 46);
    assert_eq!(refused("16,DISABLED", "16,ENABLED").line, 44);
    assert!(parse("", "").expect_err("nothing").reason.contains("0 jobs"));
}

#[test]
fn an_unknown_heading_is_an_error_with_its_line() {
    for (after, heading, line) in [
        ("Version 1.1.0 \n", "'Frobnicate every write", 2),
        ("\t5\n", "'Frobnicate every write", 10),
        ("\tTotal I/Os per Second\n", "'Bar chart 1 colour", 21),
        (
            "'ACCESS SPECIFICATIONS =========================================================\n",
            "'Think time",
            23,
        ),
        ("\tDISK\n", "'Outstanding requests", 42),
        ("'End manager\n", "'Default target settings for worker or so", 60),
        ("'END manager list\n", "'Run Time", 61),
    ] {
        let error = refused(after, &format!("{after}{heading}\n\t64\n"));
        assert_eq!((error.line, error.text.as_str()), (line, heading), "{error}");
        assert!(error.reason.starts_with("unsupported heading"), "{error}");
    }
}

#[test]
fn a_heading_that_is_not_the_one_of_its_columns_is_refused() {
    // With one column less or more, a value would be taken for another one.
    assert_eq!(refused(",starting sector,Data pattern", ",starting sector").line, 46);
    assert_eq!(refused(",use fixed seed,fixed seed value", "").line, 44);
    assert_eq!(refused("'\tstart      end        step", "'\tstart      step").line, 13);
    assert_eq!(refused("\t16,DISABLED,1,DISABLED,0", "\t16,DISABLED,1").line, 44);
    assert_eq!(refused("\t16,DISABLED,1,DISABLED", "\t16,DISABLED,1,MAYBE").line, 44);
}

#[test]
fn a_value_is_where_its_heading_has_one_and_nowhere_else() {
    assert_eq!(refused("\t16,DISABLED,1,DISABLED,0\n", "").line, 43);
    assert_eq!(refused("\t5\n", "\t5\n\t6\n").line, 10);
    assert_eq!(refused("'End worker\n", "'End worker\n\t64\n").line, 59);
    assert_eq!(refused("'Test Description\n", "\t64\n'Test Description\n").line, 3);
    assert_eq!(refused("\t0          1          30", "\t0 1 30 5").line, 7);
    assert_eq!(refused("\tMixed,ALL", "\tMixed").line, 28);
    // A value cannot be empty, and a name can.
    assert!(parse("", &FILE.replace("\tWorker 1\n", "\t\n")).is_ok());
}

#[test]
fn a_missing_specification_is_an_error_where_it_is_assigned() {
    let error = refused("\tMixed\n'End", "\tMixed\n\tAbsent\n'End");
    assert_eq!((error.line, error.text.as_str()), (50, "Absent"));
    assert_eq!(error.reason, "the assigned specification is not defined");
    let error = refused("\tMixed\n'End", "\tIdle\n'End");
    assert_eq!((error.line, error.reason.as_str()), (49, "the Idle specification measures nothing"));
}

#[test]
fn a_second_target_is_refused_and_so_is_one_of_the_network() {
    let second = "'End target\n'Target\n\tD: \"\"\n'Target type\n\tDISK\n'End target\n";
    assert_eq!(refused("'End target\n", second).line, 57);
    assert_eq!(refused("\tDISK\n'End target", "\tNETWORK,TCP\n'End target").line, 55);
}

#[test]
fn a_cycle_that_is_not_run_is_passed_over_whatever_it_says() {
    let text = FILE.replace("1          32         2", "1          9999       2");
    assert_eq!(parse("", &text).expect("it is not run").jobs[0].depth, 16);
    let text = text.replace("\tNORMAL", "\tCYCLE_OUTSTANDING_IOS");
    assert_eq!(parse("", &text).expect_err("it is run").line, 14);
}

/// As 2006.07.27 saves it, on Windows: two columns less, another heading of the display, and lines that end with CR LF.
const FILE_2006_07_27: &str = "\
Version 2006.07.27 
'TEST SETUP ====================================================================
'Test Description
\tDrive A - before
'Run Time
'\thours      minutes    seconds
\t0          0          45
'Ramp Up Time (s)
\t0
'Default Disk Workers to Spawn
\tNUMBER_OF_CPUS
'Default Network Workers to Spawn
\t0
'Record Results
\tNO_TARGETS
'Worker Cycling
'\tstart      step       step type
\t1          1          LINEAR
'Disk Cycling
'\tstart      step       step type
\t1          1          LINEAR
'Queue Depth Cycling
'\tstart      end        step       step type
\t8          64         8          LINEAR
'Test Type
\tNORMAL
'END test setup
'RESULTS DISPLAY ===============================================================
'Update Frequency,Update Type
\t4,WHOLE_TEST
'Bar chart 1 statistic
\tTotal I/Os per Second
'Bar chart 2 statistic
\tTotal MBs per Second
'Bar chart 2 manager ID, manager name
\t1,BENCH-PC
'Bar chart 2 worker ID, worker name
\t1,Worker 1
'Bar chart 6 statistic
\tTotal Error Count
'END results display
'ACCESS SPECIFICATIONS =========================================================
'Access specification name,default assignment
\tDefault,NONE
'size,% of size,% reads,% random,delay,burst,align,reply
\t2048,100,67,100,0,1,0,0
'Access specification name,default assignment
\tFile server,DISK
'size,% of size,% reads,% random,delay,burst,align,reply
\t512,10,80,100,0,1,0,0
\t4096,60,80,100,0,1,0,0
\t65536,30,80,100,0,1,0,0
'END access specifications
'MANAGER LIST ==================================================================
'Manager ID, manager name
\t1,BENCH-PC
'Manager network address
\t
'Worker
\tWorker 1
'Worker type
\tDISK
'Default target settings for worker
'Number of outstanding IOs,test connection rate,transactions per connection
\t12,DISABLED,1
'Disk maximum size,starting sector
\t0,0
'End default target settings for worker
'Assigned access specs
\tFile server
\tDefault
'End assigned access specs
'Target assignments
'Target
\tPHYSICALDRIVE:2
'Target type
\tDISK
'End target
'End target assignments
'End worker
'End manager
'END manager list
Version 2006.07.27 
";

#[test]
fn a_file_of_2006_07_27_is_understood() {
    let jobs = parse("", &FILE_2006_07_27.replace('\n', "\r\n")).expect("it is understood").jobs;
    let found: Vec<_> = jobs.iter().map(|job| (job.label.as_str(), job.specs.len(), job.depth)).collect();
    assert_eq!(found, [("File server", 3, 12), ("Default", 1, 12)]);
    assert_eq!((jobs[0].run, jobs[0].span_bytes, jobs[0].fill), (Some(Duration::from_secs(45)), None, None));
}

/// As 1.1.0 saves it with a cycle of depths: the update of the display has a column more, and so have worker and disk.
const FILE_1_1_0: &str = "\
Version 1.1.0 
'TEST SETUP ====================================================================
'Test Description
\t
'Run Time
'\thours      minutes    seconds
\t0          2          0
'Ramp Up Time (s)
\t10
'Default Disk Workers to Spawn
\t1
'Default Network Workers to Spawn
\t0
'Record Results
\tALL
'Worker Cycling
'\tstart      step       step type
\t1          1          LINEAR
'Disk Cycling
'\tstart      step       step type
\t1          1          LINEAR
'Queue Depth Cycling
'\tstart      end        step       step type
\t1          16         4          EXPONENTIAL
'Test Type
\tCYCLE_OUTSTANDING_IOS
'END test setup
'RESULTS DISPLAY ===============================================================
'Record Last Update Results,Update Frequency,Update Type
\tDISABLED,1,LAST_UPDATE
'Bar chart 1 statistic
\tTotal I/Os per Second
'Bar chart 2 statistic
\tTotal MBs per Second (Decimal)
'Bar chart 5 statistic
\t% CPU Utilization (total)
'END results display
'ACCESS SPECIFICATIONS =========================================================
'Access specification name,default assignment
\t4 KiB aligned; 50% Read; 100% random,NONE
'size,% of size,% reads,% random,delay,burst,align,reply
\t4096,100,50,100,0,1,4096,0
'END access specifications
'MANAGER LIST ==================================================================
'Manager ID, manager name
\t1,BENCH-PC
'Manager network address
\t127.0.0.1
'Worker
\tWorker 1
'Worker type
\tDISK
'Default target settings for worker
'Number of outstanding IOs,test connection rate,transactions per connection,use fixed seed,fixed seed value
\t1,DISABLED,1,ENABLED,20061
'Disk maximum size,starting sector,Data pattern
\t4194304,0,2
'End default target settings for worker
'Assigned access specs
\t4 KiB aligned; 50% Read; 100% random
'End assigned access specs
'Target assignments
'Target
\t2: \"EXTERNAL DISK 0210\"
'Target type
\tDISK
'End target
'End target assignments
'End worker
'End manager
'END manager list
Version 1.1.0 
";

#[test]
fn a_file_of_1_1_0_is_understood() {
    let jobs = parse("", FILE_1_1_0).expect("it is understood").jobs;
    assert_eq!(jobs.iter().map(|job| job.depth).collect::<Vec<_>>(), [1, 4, 16]);
    assert_eq!(jobs[2].specs, [AccessSpec::all(4096, 50, 100)]);
    assert_eq!((jobs[2].span_bytes, jobs[2].fill), (Some(2 << 30), Some(Fill::Random)));
    assert_eq!(jobs[2].warm_up, Some(Duration::from_secs(10)));
}

#[test]
fn a_file_that_was_cut_is_refused() {
    for keep in [12, 20, 27, 31, 50, 58] {
        let cut: String = FILE.lines().take(keep).map(|line| format!("{line}\n")).collect();
        let error = parse("", &cut).expect_err("it has no end");
        assert!(error.reason.contains("has no end"), "{keep} lines: {error}");
    }
    let marked = format!("\u{feff}{FILE}");
    assert_eq!(parse("", &marked).expect("it is understood"), parse("", FILE).expect("it is understood"));
}

proptest! {
    #[test]
    fn no_file_is_too_odd(line in 0..FILE.lines().count(), odd in "[0-9A-Za-z',\t -]{0,24}") {
        let replaced: String = FILE.lines().enumerate()
            .map(|(index, text)| format!("{}\n", if index == line { &odd } else { text })).collect();
        if let Ok(workload) = parse("odd", &replaced) {
            prop_assert!(workload.jobs.iter().all(|job| (1..=DEPTH_MAX).contains(&job.depth)));
        }
    }

    #[test]
    fn no_text_is_too_odd(text in "\\PC{0,200}") {
        let _ = parse("odd", &text);
    }
}
