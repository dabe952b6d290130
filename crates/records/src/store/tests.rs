//! Files as they are kept, and as they should not be.

use super::*;
use crate::run::tests::sample;
use crate::run::{Figures, Run, RunKind};
use proptest::prelude::*;
use std::os::unix::fs::PermissionsExt;

/// A folder of a test's own, and a file of runs in it that is not there yet.
fn place() -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("deep/runs.sqlite");
    fs::create_dir(folder.path().join("deep")).unwrap();
    (folder, file)
}

/// A file with so many runs.
fn with_runs(count: usize) -> (tempfile::TempDir, PathBuf) {
    let (folder, file) = place();
    let mut store = Store::to_write(&file).unwrap();
    for _ in 0..count {
        store.save(&sample()).unwrap();
    }
    (folder, file)
}

fn all() -> Filter {
    Filter { limit: 100, ..Filter::default() }
}

#[test]
fn a_run_comes_back_as_it_was() {
    let (_folder, file) = place();
    let id = Store::to_write(&file).unwrap().save(&sample()).unwrap();
    let saved = Store::to_read(&file).unwrap().run(id).unwrap().unwrap();
    assert_eq!((saved.id, saved.run), (RunId(1), sample()));
    assert!(saved.began.starts_with("2023-11-1"), "{}", saved.began);
}

#[test]
fn a_simulated_run_has_a_digest_and_no_rounds() {
    let (_folder, file) = place();
    let mut run = Run { kind: RunKind::Simulated, label: None, ..sample() };
    run.results[0].figures = Ok(Figures { iops: 1.0, digest: Some("00ff".into()), ..Figures::default() });
    let id = Store::to_write(&file).unwrap().save(&run).unwrap();
    assert_eq!(Store::to_read(&file).unwrap().run(id).unwrap().unwrap().run, run);
}

#[test]
fn runs_are_listed_the_newest_first_and_chosen_by_words() {
    let (_folder, file) = place();
    let mut store = Store::to_write(&file).unwrap();
    for (label, drive) in [("before", "Alpha"), ("after", "Alpha"), ("else", "Beta")] {
        let mut run = Run { label: Some(label.into()), ..sample() };
        run.setup.drive = drive.into();
        store.save(&run).unwrap();
    }
    let listed = |filter: &Filter| -> Vec<i64> {
        store.runs(filter).unwrap().iter().map(|summary| summary.run.0).collect()
    };
    assert_eq!(listed(&all()), [3, 2, 1]);
    assert_eq!(listed(&Filter { limit: 1, ..all() }), [3]);
    assert_eq!(listed(&Filter { drive: Some("ALPH".into()), ..all() }), [2, 1]);
    assert_eq!(listed(&Filter { label: Some("aft".into()), ..all() }), [2]);
    assert_eq!(listed(&Filter { setup: Some("nowhere".into()), ..all() }), [0; 0]);
    let newest = &store.runs(&all()).unwrap()[0];
    assert_eq!((newest.transports.len(), newest.rows, newest.mb_per_s_max), (2, 2, Some(4.096)));
}

#[test]
fn a_run_is_found_by_number_by_label_and_from_the_end() {
    let (_folder, file) = with_runs(3);
    let store = Store::to_read(&file).unwrap();
    let find = |text: &str| store.find(&text.parse().unwrap()).unwrap().map(|id| id.0);
    assert_eq!([find("last"), find("last~2"), find("last~3")], [Some(3), Some(1), None]);
    assert_eq!([find("2"), find("before"), find("17"), find("unknown")], [Some(2), Some(3), None, None]);
}

#[test]
fn a_number_is_not_given_again() {
    let (_folder, file) = with_runs(2);
    let mut store = Store::to_write(&file).unwrap();
    assert!(store.delete(RunId(2)).unwrap());
    assert!(!store.delete(RunId(2)).unwrap());
    assert_eq!(store.save(&sample()).unwrap(), RunId(3));
    store.delete(RunId(1)).unwrap();
    store.delete(RunId(3)).unwrap();
    let left = |table: &str| -> i64 {
        store.connection.query_row(&format!("SELECT count(*) FROM {table}"), (), |row| row.get(0)).unwrap()
    };
    assert_eq!(["run", "setup", "result", "round"].map(left), [0; 4]);
}

#[test]
fn runs_of_one_setup_share_its_row() {
    let (_folder, file) = with_runs(3);
    let store = Store::to_read(&file).unwrap();
    let count: i64 = store.connection.query_row("SELECT count(*) FROM setup", (), |row| row.get(0)).unwrap();
    assert_eq!(count, 1);
}

#[test]
fn what_is_no_number_or_too_much_is_not_kept() {
    let (_folder, file) = place();
    let mut store = Store::to_write(&file).unwrap();
    let mut odd = sample();
    odd.results[0].figures.as_mut().unwrap().mean_us = f64::NAN;
    assert!(matches!(store.save(&odd), Err(StoreError::Unfit { .. })));
    let long = Run { label: Some("x".repeat(1 << 17)), ..sample() };
    assert!(matches!(store.save(&long), Err(StoreError::Unfit { .. })));
    assert_eq!(store.runs(&all()).unwrap(), []);
}

#[test]
fn a_file_that_is_not_there_has_no_runs_and_is_not_made() {
    let (_folder, file) = place();
    assert!(matches!(Store::to_read(&file), Err(StoreError::Absent { .. })));
    assert!(!file.exists());
}

#[test]
fn an_empty_file_becomes_one_of_runs() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("empty");
    fs::write(&file, "").unwrap();
    assert_eq!(Store::to_read(&file).unwrap().runs(&all()).unwrap(), []);
    Store::to_write(&file).unwrap().save(&sample()).unwrap();
    assert_eq!(Store::to_read(&file).unwrap().runs(&all()).unwrap().len(), 1);
}

/// Both ways of opening fail as `is_right` says, and the file stays as it is.
#[track_caller]
fn is_refused(bytes: &[u8], is_right: impl Fn(&StoreError) -> bool) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    fs::write(&file, bytes).unwrap();
    for opened in [Store::to_read(&file), Store::to_write(&file)] {
        let error = opened.map(|_| ()).unwrap_err();
        assert!(is_right(&error), "{error}");
    }
    assert!(fs::read(&file).unwrap() == bytes);
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "nothing lies beside it");
}

#[test]
fn a_file_of_others_is_not_touched() {
    is_refused(b"{\"rows\": []}", |error| matches!(error, StoreError::Foreign { .. }));
    is_refused(&[0; 4096], |error| matches!(error, StoreError::Foreign { .. }));
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("theirs");
    Connection::open(&file).unwrap().execute_batch("CREATE TABLE run (id INTEGER)").unwrap();
    is_refused(&fs::read(&file).unwrap(), |error| matches!(error, StoreError::Foreign { .. }));
}

#[test]
fn a_folder_or_a_device_is_no_file() {
    let folder = tempfile::tempdir().unwrap();
    for path in [folder.path(), Path::new("/dev/null")] {
        assert!(matches!(Store::to_write(path), Err(StoreError::Foreign { .. })));
    }
}

#[test]
fn a_newer_schema_is_refused() {
    let (_folder, file) = with_runs(1);
    Connection::open(&file).unwrap().pragma_update(None, "user_version", schema::NEWEST + 1).unwrap();
    let newest = schema::NEWEST + 1;
    is_refused(
        &fs::read(&file).unwrap(),
        |error| matches!(error, StoreError::Newer { schema, .. } if *schema == newest),
    );
}

#[test]
fn tables_that_are_not_ours_are_damage() {
    for other in
        ["DROP TABLE round", "CREATE VIEW everything AS SELECT * FROM run", "ALTER TABLE run ADD more TEXT"]
    {
        let (_folder, file) = with_runs(1);
        Connection::open(&file).unwrap().execute_batch(other).unwrap();
        is_refused(&fs::read(&file).unwrap(), |error| matches!(error, StoreError::Damaged { .. }));
    }
}

#[test]
fn a_file_that_was_cut_is_damage() {
    let (_folder, file) = with_runs(40);
    let bytes = fs::read(&file).unwrap();
    is_refused(&bytes[..bytes.len() - 4096], |error| matches!(error, StoreError::Damaged { .. }));
}

#[test]
fn what_cannot_be_written_says_so_and_can_be_read() {
    let (folder, file) = with_runs(1);
    let within = file.parent().unwrap();
    let set = |mode| {
        fs::set_permissions(&file, fs::Permissions::from_mode(mode & 0o666)).unwrap();
        fs::set_permissions(within, fs::Permissions::from_mode(mode)).unwrap();
    };
    set(0o555);
    // Root may write all the same.
    if fs::write(within.join("probe"), "").is_err() {
        assert!(matches!(Store::to_write(&file), Err(StoreError::Unreachable { .. })));
        let other = within.join("other.sqlite");
        assert!(matches!(Store::to_write(&other), Err(StoreError::Unreachable { .. })));
        assert_eq!(Store::to_read(&file).unwrap().runs(&all()).unwrap().len(), 1);
    }
    set(0o755);
    drop(folder);
}

#[test]
fn an_unwritable_folder_is_an_error() {
    let error = Store::to_write(Path::new("/proc/runs.sqlite")).map(|_| ()).unwrap_err();
    assert!(matches!(error, StoreError::Unreachable { .. }), "{error}");
}

#[test]
fn a_missing_folder_is_an_error_and_not_created() {
    let (folder, _) = place();
    let absent = folder.path().join("new/dir");
    let error = Store::to_write(&absent.join("runs.sqlite")).map(|_| ()).unwrap_err();
    assert_eq!(error.to_string(), format!("directory {} does not exist", absent.display()));
    assert!(!folder.path().join("new").exists());
}

#[test]
fn a_path_that_sqlite_has_names_for_is_a_file() {
    assert!(absolute(Path::new(":memory:")).unwrap().is_absolute());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn bytes_of_any_kind_are_refused_or_read(bytes in prop::collection::vec(any::<u8>(), 0..3000), has_head: bool) {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("file");
        let mut bytes = bytes;
        if has_head && bytes.len() > 100 {
            bytes[..16].copy_from_slice(b"SQLite format 3\0");
            bytes[60..64].copy_from_slice(&[0, 0, 0, 1]);
            bytes[68..72].copy_from_slice(b"uask");
        }
        fs::write(&file, &bytes).unwrap();
        let refused = Store::to_read(&file).is_err() && Store::to_write(&file).is_err();
        prop_assert!(refused || bytes.is_empty());
        prop_assert!(bytes.is_empty() || fs::read(&file).unwrap() == bytes);
    }

    #[test]
    fn a_file_with_bytes_changed_is_refused_or_read(places in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..20)) {
        let (_folder, file) = with_runs(3);
        let mut bytes = fs::read(&file).unwrap();
        for (place, byte) in places {
            let at = place.index(bytes.len());
            bytes[at] = byte;
        }
        fs::write(&file, &bytes).unwrap();
        if let Ok(store) = Store::to_read(&file) {
            for summary in store.runs(&all()).unwrap_or_default() {
                let _ = store.run(summary.run);
            }
        }
        if let Ok(mut store) = Store::to_write(&file) {
            let _ = store.save(&sample());
        }
    }
}
