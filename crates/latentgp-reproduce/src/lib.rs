//! `latentgp reproduce`: the tables and figures of the papers, ours beside theirs.
//!
//! An experiment is one file with a function from a [`Context`] to a [`Part`], and its line in [`What`].

mod airline;
mod alone;
mod context;
mod latent;
mod oil_flow;
mod page;
mod part;
mod psi;
mod psi_accuracy;
mod psi_cost;
mod sinc;
mod spiral;
mod table;
mod usps;

use clap::ValueEnum;
use context::Context;
use latentgp_terminal::failure::{Failure, Outcome};
use latentgp_terminal::{interrupt, out};
use page::Run;
use part::Part;
use serde_json::json;
use std::path::PathBuf;
use std::time::Instant;

/// Runs of what is random: in full, and quickly.
const RUNS: [usize; 2] = [10, 2];

/// Which experiment, and where its results go.
#[derive(clap::Args, Debug)]
#[command(
    before_help = "\
Examples:
  latentgp reproduce --quick                       five minutes, no data needed
  latentgp reproduce airline --out /tmp/airline    one experiment
  latentgp reproduce all --data papers --out full  everything, on one page",
    after_help = "\
Each experiment writes NAME.json, CSV tables and figures (SVG, PNG) into the folder of --out; `all` also \
writes reproduction.html with everything in it, reproduction.md and reproduction.json.

The folder of --data holds the papers' own files:
  three_phase_oil_flow.npz  for oil-flow; else it runs on the embedded simulator
  usps_all.mat              for usps; else it does not run"
)]
pub struct Args {
    /// The experiment
    #[arg(value_enum, default_value = "all")]
    what: What,
    /// The folder with the papers' data
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
    /// Fewer runs, and nothing that takes long
    #[arg(long)]
    quick: bool,
    /// Runs of each Monte Carlo row, and splits of sinc [default: 10; with --quick 2]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1000))]
    runs: Option<u16>,
    /// Steps of Adam in the Monte Carlo rows of oil-flow and usps, a tenth of them with 200 nodes unless --long [default: each row's own; the released code has 5000]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    steps: Option<u32>,
    /// All steps of Monte Carlo from the start, as the released code has them: five minutes for oil-flow, hours for usps
    #[arg(long, conflicts_with = "quick")]
    long: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// The folder for the results; it is made where there is none
    #[arg(long, value_name = "DIR", default_value = "reproduction")]
    out: PathBuf,
}

/// The experiments.
#[derive(Clone, Copy, Debug, PartialEq, ValueEnum)]
enum What {
    /// Latent spaces of oil flow: Table 1 and Figure 2
    OilFlow,
    /// Free simulation of airline passengers: Table 3 and Figure 3
    Airline,
    /// The time that Ψ1 takes, relative to the unscented rule: Figure 1
    PsiCost,
    /// How far Ψ1 and Ψ2 are from the truth: supplement, Figure 1
    PsiAccuracy,
    /// One direction among 25 inputs: the VDMGP supplement
    Sinc,
    /// A spiral in ten dimensions: PPCA and the GPLVM
    Spiral,
    /// Latent spaces of handwritten digits: Table 2 and Figure 2
    Usps,
    /// All of them
    All,
}

impl What {
    fn name(self) -> String {
        self.to_possible_value().map_or(String::new(), |v| v.get_name().to_string())
    }

    fn run(self, context: &Context) -> Outcome<Part> {
        match self {
            What::OilFlow => oil_flow::run(context),
            What::Usps => usps::run(context),
            What::Airline => airline::run(context),
            What::PsiCost => psi_cost::run(context),
            What::PsiAccuracy => psi_accuracy::run(context),
            What::Sinc => sinc::run(context),
            What::Spiral => spiral::run(context),
            What::All => Err(Failure::work("`all` is not one experiment")),
        }
    }

    /// Errs on an option that this experiment does not look at.
    fn heeds(self, args: &Args) -> Outcome {
        use What::{Airline, All, OilFlow, Sinc, Usps};
        for (given, works, option) in [
            (args.steps.is_some(), matches!(self, OilFlow | Usps | All), "--steps"),
            (args.runs.is_some(), matches!(self, OilFlow | Usps | Airline | Sinc | All), "--runs"),
            (args.long, matches!(self, OilFlow | Usps | All), "--long"),
        ] {
            if given && !works {
                return Err(Failure::usage(format!(
                    "{option} has no effect on `reproduce {}`; leave it out",
                    self.name()
                )));
            }
        }
        Ok(())
    }

    /// Why it cannot run, where it cannot.
    fn obstacle(self, context: &Context) -> Option<Failure> {
        if self == What::Usps { usps::obstacle(context) } else { None }
    }
}

/// Runs, writes and tells.
pub fn run(args: &Args, seed: u64, quiet: bool) -> Outcome {
    args.what.heeds(args)?;
    if let Some(folder) = args.data.as_ref().filter(|folder| !folder.is_dir()) {
        let shown = folder.display();
        return Err(Failure::data(format!("--data: there is no folder `{shown}`")));
    }
    let runs = args.runs.map_or(RUNS[usize::from(args.quick)], usize::from);
    let mut context = Context::new(args.data.clone(), args.quick, runs, seed, quiet);
    context.long = args.long;
    context.steps = args.steps.map(|n| n as usize);
    let chosen: Vec<What> = match args.what {
        What::All => What::value_variants().iter().copied().filter(|w| *w != What::All).collect(),
        one => vec![one],
    };
    if let [one] = chosen[..]
        && let Some(obstacle) = one.obstacle(&context)
    {
        return Err(obstacle);
    }
    std::fs::create_dir_all(&args.out)
        .map_err(|e| Failure::work(format!("--out {}: {e}", args.out.display())))?;
    interrupt::listen()?;
    let mut run = Run { parts: Vec::new(), skipped: Vec::new(), made_by: made_by(args, seed) };
    let mut ended = Ok(());
    for what in chosen {
        if let Some(obstacle) = what.obstacle(&context) {
            run.skipped.push(format!("`{}` was skipped: {obstacle}", what.name()));
            continue;
        }
        match one(what, &context, args) {
            Ok(part) => {
                let interrupted = part.interrupted;
                run.parts.push(part);
                if interrupted {
                    ended = Err(Failure::interrupted("interrupted").within(&what.name()));
                    break;
                }
            }
            Err(failure) => {
                let interrupted = failure.is_interruption();
                if args.what == What::All {
                    run.skipped.push(format!("`{}` failed: {failure}", what.name()));
                }
                ended = Err(failure.within(&what.name()));
                if interrupted {
                    break;
                }
            }
        }
    }
    context.finish();
    let early = ended.as_ref().is_err_and(Failure::is_interruption);
    if early {
        run.skipped.push("The run ended early; what is here was finished before.".into());
    }
    // What an earlier run wrote is worth more than the beginning of this one.
    if args.what == What::All && !(early && args.out.join("reproduction.html").exists()) {
        out::file(&args.out.join("reproduction.html"), run.html().as_bytes())?;
        out::file(&args.out.join("reproduction.md"), run.markdown().as_bytes())?;
        let text = serde_json::to_string_pretty(&json(args, &run)).map_err(Failure::work)?;
        out::file(&args.out.join("reproduction.json"), (text + "\n").as_bytes())?;
    }
    if args.json {
        out::json(&json(args, &run))?;
    }
    for line in &run.skipped {
        out::note(quiet, line);
    }
    if !run.parts.is_empty() {
        out::note(quiet, format!("results are in {}", args.out.display()));
    }
    ended
}

/// One experiment; its files are written when it is over.
fn one(what: What, context: &Context, args: &Args) -> Outcome<Part> {
    let clock = Instant::now();
    context.doing(&what.name())?;
    let mut part = what.run(context)?;
    part.seconds = clock.elapsed().as_secs_f64();
    if !(part.interrupted && args.out.join(format!("{}.json", part.name)).exists()) {
        part.write(&args.out)?;
    }
    if !args.json {
        context.pause(|| out::text(&format!("{}\n", part.text())))?;
    }
    Ok(part)
}

fn json(args: &Args, run: &Run) -> serde_json::Value {
    json!({
        "made_by": run.made_by,
        "quick": args.quick,
        "parts": run.parts.iter().map(Part::json).collect::<Vec<_>>(),
        "skipped": run.skipped,
        "out": args.out,
    })
}

fn made_by(args: &Args, seed: u64) -> String {
    let runs = args.runs.map_or(String::new(), |n| format!(" --runs {n}"));
    let quick = if args.quick { " --quick" } else { "" };
    let data = if args.data.is_some() { " --data DIR" } else { "" };
    let long = if args.long { " --long" } else { "" };
    let steps = args.steps.map_or(String::new(), |n| format!(" --steps {n}"));
    format!(
        "Made by `latentgp reproduce {}{data}{quick}{long}{steps}{runs} --seed {}`, version {}, on {} threads.",
        args.what.name(),
        seed,
        env!("CARGO_PKG_VERSION"),
        rayon::current_num_threads()
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Args as _;

    /// The help as lines, on a terminal of that width.
    fn help(width: usize) -> Vec<String> {
        let mut command = Args::augment_args(clap::Command::new("reproduce")).term_width(width);
        command.render_help().to_string().lines().map(String::from).collect()
    }

    #[test]
    fn the_help_breaks_lines_at_the_edge_only() {
        for width in [80, 100, 120] {
            let lines = help(width);
            for pair in lines.windows(2) {
                let [line, next] = pair else { continue };
                assert!(line.chars().count() <= width, "{width}: {line}");
                let first = next.split(' ').next().unwrap_or_default();
                let prose = |l: &str| !l.is_empty() && !l.starts_with(' ') && !l.ends_with(':');
                if prose(line) && prose(next) {
                    let room = width - line.chars().count();
                    assert!(first.chars().count() + 1 > room, "{width}: `{line}` has room for `{first}`");
                }
            }
            assert!(lines.iter().any(|l| l.starts_with("  usps_all.mat")), "{lines:?}");
        }
    }
}
