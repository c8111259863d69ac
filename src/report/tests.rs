//! Reports of a made-up build whose figures are easy to add up.

use super::*;
use crate::build::stats::{
    IndexStats, InputStats, MemoryStats, Phase, Problem, Problems, Settings, SortStats,
    SpillStats, WorkerStats,
};
use crate::tempspace::TempUsage;

const MB: u64 = 1 << 20;

fn index(name: &str, definition: &str, bytes: u64) -> IndexStats {
    let pages = bytes / 8192 - 1;
    IndexStats {
        name: name.to_owned(),
        definition: definition.to_owned(),
        documents: 6046,
        keys: 123_456,
        postings: 7_654_321,
        entry_pages: pages / 4,
        data_pages: pages - pages / 4,
        bytes,
        skipped_tokens: 0,
        spill: SpillStats {
            runs: 5,
            tuples: 60_000,
            tids: 2_000_000,
            plain: 12_000_000,
            varbyte: 2_400_000,
            keys: 700_000,
            written: 1_500_000,
        },
    }
}

/// Two workers, 16 MB, four phases, two indexes, one problem of each sort.
fn a_build() -> BuildStats {
    let worker = |documents, scan, stalled| WorkerStats {
        documents,
        bytes: documents * 5000,
        runs: 3,
        spilled: 1_500_000,
        scan,
        spill: 0.5,
        merge: 2.0,
        stalled,
    };
    let phase = |name: &str, wall, cpu| Phase { name: name.to_owned(), wall, cpu };
    let problem = |offset, skipped| Problem {
        file: "/mail/in<1>.mbox".to_owned(),
        offset,
        reason:
            "the header \"Content-Type\" names a charset that nobody knows, and the \
                 text has bytes that are no UTF-8"
                .to_owned(),
        skipped,
    };
    BuildStats {
        ginmill_report: 1,
        version: "0.1.0".to_owned(),
        input: InputStats { files: 2, bytes: 31 * MB, documents: 6046, ranges: 40 },
        settings: Settings {
            workers_asked: 8,
            workers: 2,
            workers_note: Some("each needs 4MB of the memory limit".to_owned()),
            memory: 16 * MB,
            temp_limit: Some(4 * MB),
            codec: "lz4".to_owned(),
            fillfactor: 100,
            format: "mbox".to_owned(),
        },
        phases: vec![
            phase("scanning", 6.0, 11.4),
            phase("sorting", 0.5, 0.9),
            phase("merging and loading", 3.0, 4.5),
            phase("syncing", 0.5, 0.0),
        ],
        indexes: vec![
            index("body_trgm", "gin_trgm_ops(body)", 6 * MB),
            index("body_tsvector", "tsvector_ops(body, english)", 2 * MB),
        ],
        workers: vec![worker(3000, 5.9, 0.1), worker(3046, 5.7, 1.1)],
        sort: SortStats {
            runs: 6,
            extra_passes: 1,
            window: 65_536,
            merge_workers: 2,
            parts: 24,
        },
        temp: TempUsage {
            files: 2,
            written: 3_100_000,
            read: 6_200_000,
            peak: 4_000_000,
            limit: Some(4 * MB),
        },
        memory: MemoryStats {
            limit: 16 * MB,
            peak_charged: 15 * MB,
            peak_resident: 18 * MB,
            samples: (0u32..100)
                .map(|n| (f64::from(n) / 10.0, MB * u64::from(n) / 7, MB * 18))
                .collect(),
        },
        problems: Problems {
            skipped: 1,
            damaged: 2,
            list: vec![problem(1_234_567, false), problem(0, true)],
        },
    }
}

/// Figures that no build has, as a file may hold them.
fn nonsense() -> BuildStats {
    let mut stats = a_build();
    stats.input.bytes = u64::MAX;
    stats.temp = TempUsage {
        files: u64::MAX,
        written: u64::MAX,
        read: u64::MAX,
        peak: u64::MAX,
        limit: Some(0),
    };
    for index in &mut stats.indexes {
        index.name = "<script>alert(1)</script>\u{1b}[31m".repeat(20);
        index.definition = "x".repeat(500);
        index.bytes = u64::MAX;
        index.keys = 1 << 40;
        index.spill = SpillStats {
            runs: 1 << 20,
            tuples: 1 << 30,
            tids: 1 << 30,
            plain: u64::MAX,
            varbyte: u64::MAX,
            keys: u64::MAX,
            written: u64::MAX,
        };
    }
    for phase in &mut stats.phases {
        phase.wall = 1e308;
        phase.cpu = -1e308;
    }
    for worker in &mut stats.workers {
        worker.scan = -5.0;
        worker.stalled = f64::INFINITY;
        worker.merge = f64::NAN;
    }
    stats.memory.samples.extend([(f64::NAN, u64::MAX, 0), (-1e300, 0, u64::MAX)]);
    stats
}

#[test]
fn tables_fit_a_hundred_columns_whatever_is_in_them() {
    for stats in [a_build(), nonsense(), BuildStats::default()] {
        for line in text::render(&stats).lines() {
            assert!(line.chars().count() <= text::WIDTH, "{line}");
            assert!(!line.contains('\u{1b}'), "{line}");
        }
    }
}

#[test]
fn totals_are_the_sums_of_their_rows() {
    let stats = a_build();
    for (report, column, total) in [
        ("phases", "time", Cell::Seconds(10.0)),
        ("indexes", "size", Cell::Bytes(8 * MB)),
        ("indexes", "postings", Cell::Count(2 * 7_654_321)),
        ("temp", "plain TIDs", Cell::Bytes(24_000_000)),
        ("temp", "written", Cell::Bytes(3_000_000)),
        ("temp", "runs", Cell::Count(6)),
    ] {
        let report = ALL.iter().find(|known| known.name() == report).unwrap();
        let table = report.table(&stats);
        let at = table.columns.iter().position(|name| name == column).unwrap();
        assert!(table.total);
        assert_eq!(table.rows.last().unwrap()[at], total, "{} {column}", report.name());
    }
}

#[test]
fn rows_have_a_cell_per_column() {
    for stats in [a_build(), nonsense(), BuildStats::default()] {
        for report in ALL {
            let table = report.table(&stats);
            for row in &table.rows {
                assert_eq!(row.len(), table.columns.len(), "{}", report.name());
            }
        }
    }
}

#[test]
fn the_table_of_phases_looks_like_this() {
    let phases = ALL.iter().find(|report| report.name() == "phases").unwrap();
    let expected = "\
Time per phase

phase                  time  share  CPU time  processors used
-------------------  ------  -----  --------  ---------------
scanning             6.00 s   60 %    11.4 s              1.9
sorting              500 ms  5.0 %    900 ms              1.8
merging and loading  3.00 s   30 %    4.50 s              1.5
syncing              500 ms  5.0 %      0 ms              0.0
-------------------  ------  -----  --------  ---------------
total                10.0 s  100 %    16.8 s              1.7
";
    assert_eq!(text::render_one(*phases, &a_build()), expected);
}

#[test]
fn long_words_are_wrapped_inside_their_column() {
    let problems = ALL.iter().find(|report| report.name() == "problems").unwrap();
    let text = text::render_one(*problems, &a_build());
    let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(text.lines().count() > 8, "{text}");
    assert!(words.contains("1,234,567 indexed"), "{text}");
    assert!(words.contains("the first 2 of 3"), "{text}");
}

#[test]
fn figures_are_written_for_people() {
    for (bytes, shown) in [
        (0, "0 B"),
        (1023, "1023 B"),
        (1024, "1.00 kB"),
        (1_572_864, "1.50 MB"),
        (24 << 30, "24.0 GB"),
        (1_048_575, "1.00 MB"),
        (u64::MAX, "16.0 EB"),
    ] {
        assert_eq!(text::size(bytes), shown);
    }
    for (number, shown) in
        [(0, "0"), (999, "999"), (1000, "1,000"), (1_234_567, "1,234,567")]
    {
        assert_eq!(text::count(number), shown);
    }
    for (seconds, shown) in [
        (0.0, "0 ms"),
        (0.0032, "3.20 ms"),
        (0.999, "999 ms"),
        (1.25, "1.25 s"),
        (99.9, "99.9 s"),
        (125.0, "2 min 05 s"),
        (3599.9, "1 h 00 min"),
        (-1.0, "?"),
        (f64::NAN, "?"),
    ] {
        assert_eq!(text::duration(seconds), shown, "{seconds}");
    }
    for (share, shown) in
        [(0.0, "0 %"), (0.004, "0.4 %"), (0.42, "42 %"), (1.0, "100 %")]
    {
        assert_eq!(text::percent(share), shown);
    }
}

#[test]
fn every_figure_is_a_line_of_csv() {
    let csv = csv::render(&a_build());
    for line in [
        "report,row,what,value,unit",
        "build,3,input files,2,",
        "build,4,input size,32505856,bytes",
        "phases,1,time,6,seconds",
        "phases,total,time,10,seconds",
        "temp,1,written,1500000,bytes",
        "memory,1,limit,16777216,bytes",
        "problems,2,byte,0,",
    ] {
        assert!(
            csv.split("\r\n").any(|given| given == line),
            "{line} is not in\n{csv}"
        );
    }
    assert!(csv.contains(",\"the header \"\"Content-Type\"\" names"), "{csv}");
    let lines: Vec<&str> = csv.trim_end().split("\r\n").collect();
    assert!(lines.iter().all(|line| line.matches(',').count() >= 4));
}

#[test]
fn json_is_read_back_as_it_was_written() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join(REPORT_FILE);
    fs::write(&path, json::render(&a_build())).unwrap();
    assert_eq!(read(&path).unwrap(), a_build());
    assert_eq!(read(dir.path()).unwrap(), a_build());
}

#[test]
fn what_is_no_report_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("x.json");
    for (text, reason) in [
        ("", "a ginmill report"),
        ("{}", "missing field `ginmill_report`"),
        (r#"{"ginmill_report": 2}"#, "has report format 2"),
        (r#"{"ginmill_report": 1}"#, "missing field"),
        ("[1]", "a ginmill report"),
    ] {
        fs::write(&path, text).unwrap();
        let error = read(&path).unwrap_err().to_string();
        assert!(error.contains(reason), "{text}: {error}");
    }
    let error = read(&dir.path().join("none")).unwrap_err().to_string();
    assert!(error.starts_with("cannot read the report "), "{error}");
}

#[test]
fn the_page_needs_no_network_and_no_script() {
    for stats in [a_build(), nonsense(), BuildStats::default()] {
        let page = html::render(&stats);
        for forbidden in
            ["<script", "http:", "https:", "url(", "@import", " src=", "NaN"]
        {
            assert!(!page.contains(forbidden), "{forbidden}");
        }
        assert!(!page.contains("inf%") && !page.contains('\u{1b}'));
        for tag in ["section", "table", "svg", "tr", "td", "div", "p", "ul", "dl"] {
            let opened = page.matches(&format!("<{tag}>")).count()
                + page.matches(&format!("<{tag} ")).count();
            let closed = page.matches(&format!("</{tag}>")).count();
            assert_eq!(opened, closed, "{tag}");
        }
    }
}

#[test]
fn every_chart_has_a_table_behind_it() {
    let page = html::render(&a_build());
    let sections: Vec<&str> = page.split("<section").skip(1).collect();
    let charts = sections.iter().filter(|section| section.contains("class=\"chart\""));
    let tables = charts.clone().filter(|section| section.contains("<table>"));
    assert_eq!((charts.count(), tables.count()), (5, 5));
    assert!(page.contains("/mail/in&lt;1&gt;.mbox"));
}

#[test]
fn bars_have_the_shares_of_their_figures() {
    let page = html::render(&a_build());
    // Phases are a timeline: sorting begins where scanning ended.
    assert!(page.contains("x=\"60.000%\" y=\"62\" width=\"5.000%\""), "{page}");
    // Written is an eighth of plain.
    assert!(page.contains("class=\"c\" x=\"0.000%\" y=\"106\" width=\"12.500%\""));
}

#[test]
fn advice_follows_from_the_figures() {
    let stats = a_build();
    let lines = advice::advice(&stats);
    for words in [
        "2 of 8 workers were started: each needs 4MB",
        "A memory limit of 96.0 MB or less would have made temporary files unnecessary",
        "Temporary files took 2.86 MB, 12 % of the 22.9 MB",
        "6 sorted runs were too many",
        "a merge pass came before the last one",
        "Temporary files reached 95 % of their limit of 4.00 MB",
        "2 workers waited 30 % of the merge",
        "body_trgm is 75 % of the index bytes",
        "1 message could not be indexed",
        "2 messages could not be read exactly",
    ] {
        assert!(lines.iter().any(|line| line.contains(words)), "{words}: {lines:#?}");
    }
    let plain = |line: &String| {
        line.ends_with('.')
            && line.starts_with(|c: char| c.is_uppercase() || c.is_ascii())
    };
    assert!(lines.iter().all(plain), "{lines:#?}");
}

#[test]
fn a_build_without_faults_gets_little_advice() {
    let mut stats = a_build();
    stats.settings.workers_asked = 2;
    stats.indexes.truncate(1);
    stats.indexes[0].spill = SpillStats::default();
    stats.temp = TempUsage::default();
    stats.sort.extra_passes = 0;
    stats.problems = Problems::default();
    stats.workers.iter_mut().for_each(|worker| {
        worker.stalled = 0.0;
        worker.spill = 0.0;
    });
    assert_eq!(advice::advice(&stats), Vec::<String>::new());

    stats.memory.limit = 1 << 30;
    let lines = advice::advice(&stats);
    let enough = "Everything fitted into memory; about 48.0 MB would have been enough.";
    assert_eq!(lines, [enough]);
    stats.memory.peak_resident = (1 << 30) + 17 * MB;
    assert!(advice::advice(&stats)[0].contains("Memory went 17.0 MB over the limit"));
}
