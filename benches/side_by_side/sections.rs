//! What is measured, in which order.
//!
//! Within a section, everything that is compared is measured once per round, one after
//! the other. Each builder finds the input in the page cache.

use std::path::{Path, PathBuf};

use ginmill::build::stats::BuildStats;
use ginmill::catalog::IndexDefinition;
use tempfile::TempDir;

use crate::comparison::{Comparison, Input, Machine};
use crate::mail::Mail;
use crate::model::Model;
use crate::program::{Build, Program};
use crate::series::{Run, Series};
use crate::server::Server;
use crate::{Args, Outcome, Section, note, trigrams, words};

/// Workers that are compared; 0 is the leader alone.
pub const WORKERS: [usize; 3] = [0, 1, 2];
/// Memory limits of the memory section, megabytes.
const MEMORY: [u64; 7] = [16, 32, 64, 128, 256, 512, 1024];
/// Workers of the sections that do not compare numbers of workers.
pub const USUAL: usize = 2;
/// Name of the series with all default indexes.
pub const TOGETHER: &str = "all together";
/// The index that tantivy's is compared with.
const WORDS: &str = "body_tsvector=tsvector_ops(body, english)";
/// The index that codesearch's is compared with.
const TRIGRAMS: &str = "body_trgm=gin_trgm_ops(body)";
/// Threads for tantivy.
const THREADS: [usize; 2] = [1, 2];
/// First size of the growth section, with `--quick` and without; bytes.
const GROWTH_FROM: [u64; 2] = [5 << 20, 50 << 20];
/// Input with `--quick`, bytes.
const QUICK: u64 = 20 << 20;

/// What all sections need.
struct Bench<'a> {
    args: &'a Args,
    rounds: u32,
    mail: Mail,
    /// Whether that is only a part of the input.
    part: bool,
    program: Program,
    work: PathBuf,
    /// Seconds to cut the input into messages.
    claiming: f64,
}

/// Measures all sections that are wanted.
pub fn measure(args: &Args) -> Outcome<Comparison> {
    let top = match std::env::var_os("GINMILL_COMPARE_WORK") {
        Some(directory) => PathBuf::from(directory),
        None => std::env::temp_dir(),
    };
    let own = TempDir::with_prefix_in("side-by-side-", top)?;
    let work = own.path();
    let bench = Bench::new(args, work)?;
    let mut comparison = Comparison {
        ginmill_compare: 1,
        machine: Machine::this(),
        input: Input {
            files: bench.mail.files(),
            bytes: bench.mail.bytes(),
            part: bench.part,
            ..Input::default()
        },
        memory: args.memory.0,
        rounds: bench.rounds,
        ..Comparison::default()
    };
    if args.wants(Section::Postgres) || args.wants(Section::Workers) {
        bench.postgres_and_workers(&mut comparison)?;
    }
    if args.wants(Section::Memory) {
        comparison.limits = bench.limits()?;
    }
    if args.wants(Section::Growth) {
        comparison.growth = bench.growth()?;
    }
    if args.wants(Section::Extraction) {
        bench.extraction(&mut comparison)?;
    }
    if args.wants(Section::Tantivy) {
        bench.tantivy(&mut comparison)?;
    }
    if args.wants(Section::Codesearch) {
        bench.codesearch(&mut comparison)?;
    }
    comparison.machine.load_at_end = Machine::load();
    comparison.judge();
    Ok(comparison)
}

impl<'a> Bench<'a> {
    fn new(args: &'a Args, work: &Path) -> Outcome<Bench<'a>> {
        let mut mail = Mail::open(&args.input)?;
        let part = args.quick && mail.bytes() > QUICK;
        if part {
            mail = mail.part(QUICK, &work.join("part"))?;
        }
        // the first time brings the input into the page cache
        mail.claiming()?;
        let claiming = mail.claiming()?;
        Ok(Bench {
            args,
            rounds: if args.quick { 1 } else { args.rounds },
            mail,
            part,
            program: Program::new(work)?,
            work: work.to_path_buf(),
            claiming,
        })
    }

    fn memory(&self) -> u64 {
        self.args.memory.0
    }

    fn series(&self, what: &str, workers: usize) -> Series {
        Series {
            what: what.to_owned(),
            workers,
            memory: self.memory(),
            input: self.mail.bytes(),
            runs: Vec::new(),
        }
    }

    /// Builds over the whole input with ginmill; no index: all default ones.
    fn build(&self, index: &[&'static str], workers: usize, memory: u64) -> Build<'_> {
        Build {
            input: &self.mail.paths,
            indexes: index.to_vec(),
            workers,
            memory,
            extract_only: false,
        }
    }

    fn round(&self, number: u32, section: &str) {
        note(&format!("{section}: round {} of {}", number + 1, self.rounds));
    }

    fn postgres_and_workers(&self, comparison: &mut Comparison) -> Outcome<()> {
        let indexes = self.mail.indexes();
        let definitions = indexes.iter().map(|index| index.parse());
        let definitions = definitions.collect::<Result<Vec<IndexDefinition>, _>>()?;
        let mut server = None;
        let (mut theirs, mut ours): (Vec<Series>, Vec<Series>) = (vec![], vec![]);
        if self.args.wants(Section::Postgres) {
            let loaded = Server::load(&self.mail, self.memory())?;
            comparison.input.messages = Some(loaded.loaded.read.messages);
            comparison.input.skipped = Some(loaded.loaded.read.skipped);
            comparison.input.cut = Some(loaded.loaded.cut);
            comparison.input.table = Some(loaded.loaded.bytes);
            comparison.settings.clone_from(&loaded.settings);
            server = Some(loaded);
            for definition in &definitions {
                for workers in WORKERS {
                    theirs.push(self.series(&definition.name, workers));
                    ours.push(self.series(&definition.name, workers));
                }
            }
        }
        let mut together = WORKERS.map(|workers| self.series(TOGETHER, workers));
        let mut reports: [Vec<BuildStats>; WORKERS.len()] = Default::default();
        for number in 0..self.rounds {
            if let Some(server) = &mut server {
                self.round(number, "each index, PostgreSQL and ginmill");
                for (n, definition) in definitions.iter().enumerate() {
                    for (w, workers) in WORKERS.into_iter().enumerate() {
                        let place = n * WORKERS.len() + w;
                        theirs[place].runs.push(server.build(definition, workers)?);
                        let build = self.build(&[indexes[n]], workers, self.memory());
                        ours[place].runs.push(self.program.run(&build)?.0);
                    }
                }
            }
            self.round(number, "all indexes together, workers 0, 1, 2");
            for (w, workers) in WORKERS.into_iter().enumerate() {
                let build = self.build(&[], workers, self.memory());
                let (run, report) = self.program.run(&build)?;
                together[w].runs.push(run);
                reports[w].push(report);
            }
        }
        let middle = [0, 1, 2].map(|w| in_the_middle(&together[w].runs));
        let [alone, one, two] = middle;
        let seconds = |w: usize, run: usize| together[w].runs[run].seconds;
        comparison.model = Some(Model::new(
            seconds(0, alone),
            (&reports[1][one], seconds(1, one)),
            (&reports[2][two], seconds(2, two)),
            self.claiming,
            comparison.machine.cores,
        ));
        comparison.input.messages.get_or_insert(reports[2][two].input.documents);
        comparison.report = Some(reports[2].swap_remove(two));
        comparison.postgres = theirs;
        comparison.alone = ours;
        comparison.together = together.into();
        Ok(())
    }

    fn limits(&self) -> Outcome<Vec<Series>> {
        let mut limits = MEMORY.map(|megabytes| Series {
            memory: megabytes << 20,
            ..self.series(TOGETHER, USUAL)
        });
        for number in 0..self.rounds {
            self.round(number, "memory 16MB to 1GB");
            for series in &mut limits {
                let build = self.build(&[], USUAL, series.memory);
                series.runs.push(self.program.run(&build)?.0);
            }
        }
        Ok(limits.into())
    }

    fn growth(&self) -> Outcome<Vec<Series>> {
        let total = self.mail.bytes();
        let from = GROWTH_FROM[usize::from(!self.args.quick)];
        let sizes = std::iter::successors(Some(from), |size| Some(size * 2));
        let mut parts = Vec::new();
        // the last part is less than the whole by a third at least
        for (n, size) in sizes.take_while(|size| size * 3 / 2 < total).enumerate() {
            parts.push(self.mail.part(size, &self.work.join(format!("growth-{n}")))?);
        }
        let parts: Vec<&Mail> = parts.iter().chain([&self.mail]).collect();
        let series = |part: &&Mail| Series {
            input: part.bytes(),
            ..self.series(TOGETHER, USUAL)
        };
        let mut growth: Vec<Series> = parts.iter().map(series).collect();
        for number in 0..self.rounds {
            self.round(number, "growth of the input");
            for (series, part) in growth.iter_mut().zip(&parts) {
                let build = Build {
                    input: &part.paths,
                    ..self.build(&[], USUAL, self.memory())
                };
                series.runs.push(self.program.run(&build)?.0);
            }
        }
        Ok(growth)
    }

    fn extraction(&self, comparison: &mut Comparison) -> Outcome<()> {
        if !self.program.extracts {
            note("extraction: left out, the program has no `index --extract-only`");
            return Ok(());
        }
        let mut whole = self.series(TOGETHER, USUAL);
        let mut keys = self.series("keys made and dropped", USUAL);
        for number in 0..self.rounds {
            self.round(number, "extraction alone");
            for (extract_only, series) in [(false, &mut whole), (true, &mut keys)] {
                let build =
                    Build { extract_only, ..self.build(&[], USUAL, self.memory()) };
                series.runs.push(self.program.run(&build)?.0);
            }
        }
        comparison.extraction = vec![whole, keys];
        Ok(())
    }

    fn tantivy(&self, comparison: &mut Comparison) -> Outcome<()> {
        if !words::COMPILED {
            note("tantivy: left out, it is not compiled in; benches/compare --tantivy");
            return Ok(());
        }
        let bodies = self.work.join("bodies");
        self.mail.bodies(&bodies)?;
        let mut theirs = THREADS.map(|threads| self.series("tantivy", threads));
        let mut ours = THREADS.map(|threads| self.series("ginmill", threads));
        for number in 0..self.rounds {
            self.round(number, "body words, tantivy and ginmill");
            for (n, threads) in THREADS.into_iter().enumerate() {
                let run = words::run(&bodies, &self.work, threads, self.memory())?;
                theirs[n].runs.push(run);
                let build = self.build(&[WORDS], threads, self.memory());
                ours[n].runs.push(self.program.run(&build)?.0);
            }
        }
        comparison.words = ours.into_iter().chain(theirs).collect();
        Ok(())
    }

    fn codesearch(&self, comparison: &mut Comparison) -> Outcome<()> {
        let Some(program) = trigrams::cindex() else {
            note(
                "codesearch: left out, there is no cindex (Debian package codesearch)",
            );
            return Ok(());
        };
        let bodies = self.work.join("body-files");
        trigrams::write(&self.mail, &bodies)?;
        let mut ours = self.series("ginmill", 1);
        let mut theirs = self.series("codesearch", 1);
        for number in 0..self.rounds {
            self.round(number, "body trigrams, codesearch and ginmill");
            theirs.runs.push(trigrams::run(&program, &bodies, &self.work)?);
            let build = self.build(&[TRIGRAMS], 1, self.memory());
            ours.runs.push(self.program.run(&build)?.0);
        }
        comparison.trigrams = vec![ours, theirs];
        Ok(())
    }
}

/// The position of the run whose time is the median, or the lower of two.
fn in_the_middle(runs: &[Run]) -> usize {
    let mut order: Vec<usize> = (0..runs.len()).collect();
    order.sort_by(|&a, &b| runs[a].seconds.total_cmp(&runs[b].seconds));
    order[(order.len() - 1) / 2]
}
