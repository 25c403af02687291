//! `latentgp explore MODEL`: the model in the browser.

use crate::args::Common;
use crate::failure::{Failure, Outcome};
use crate::{interrupt, out};
use latentgp::data::table::Table;
use latentgp::file::{ModelFile, Store, TrainedRegression, TrainedSeries, TrainedSpace, in_file};
use latentgp_explore::{Explorer, Options, server};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Of what, and how.
#[derive(clap::Args)]
#[command(
    before_help = "\
Examples:
  latentgp explore oil.lgp                              the latent map, decoded under the pointer
  latentgp explore digits.lgp --images 8x8              rows are images of 8 × 8 pixels
  latentgp explore oil.lgp --data oil.csv --no-open     more columns to colour and search by
  latentgp explore oil.lgp --static oil.html            the same page as one file, to be sent",
    after_help = "\
The page is served on this machine alone, at an address with a random token, which is printed; it ends with Ctrl-C.
Nothing is loaded from elsewhere. A regression shows its prediction along each input, a model of series its forecast."
)]
pub struct Args {
    /// A model file
    model: PathBuf,
    /// More columns of the training rows, in their order: to colour, to search and to filter by
    #[arg(long, value_name = "FILE")]
    data: Option<String>,
    /// The rows are images of so many rows and columns of pixels, such as 8x8
    #[arg(long, value_name = "HxW", value_parser = size)]
    images: Option<(usize, usize)>,
    /// The port [default: any that is free]
    #[arg(long, value_name = "N", default_value_t = 0, hide_default_value = true)]
    port: u16,
    /// Do not open the browser
    #[arg(long)]
    no_open: bool,
    /// Write the page as one file that decodes by itself, and end
    #[arg(long = "static", value_name = "OUT.html", conflicts_with_all = ["port", "no_open"])]
    file: Option<PathBuf>,
    /// The title of the page [default: the name of the model file]
    #[arg(long)]
    title: Option<String>,
}

fn size(text: &str) -> Result<(usize, usize), String> {
    let parts = text.split_once(['x', 'X', '×']);
    let sides = parts.and_then(|(h, w)| Some((h.parse::<usize>().ok()?, w.parse::<usize>().ok()?)));
    sides
        .filter(|(h, w)| *h > 0 && *w > 0)
        .ok_or_else(|| "expected HEIGHTxWIDTH in pixels, such as 8x8".into())
}

/// Serves the page, or writes it.
pub fn run(args: &Args, common: &Common) -> Outcome {
    out::check(args.file.as_deref(), &["html", "htm"])?;
    let data = args.data.as_deref();
    let read = [("MODEL", Some(args.model.as_path())), ("--data", data.and_then(Table::file))];
    out::apart(&read, &[("--static", args.file.as_deref())])?;
    let explorer = explorer(args)?;
    if let Some(path) = &args.file {
        out::file(path, explorer.static_page()?.as_bytes())?;
        out::note(common.quiet, format!("the page is in {}", path.display()));
        return Ok(());
    }
    interrupt::listen()?;
    let ready = |address: &str| {
        let _ = out::text(address);
        out::note(common.quiet, "this address works on this machine until Ctrl-C");
        if !args.no_open && !open(address) {
            out::note(common.quiet, "no browser could be started; open the address in one");
        }
    };
    server::serve(explorer, args.port, ready, interrupt::asked)
        .map_err(|e| Failure::work(format!("--port {}: {e}; leave it out to get a free one", args.port)))?;
    Ok(())
}

fn explorer(args: &Args) -> Outcome<Explorer> {
    let file = ModelFile::read(&args.model).map_err(Failure::data)?;
    let name = args.model.file_stem().map(|s| s.to_string_lossy().into_owned()).unwrap_or_default();
    let options = Options {
        title: args.title.clone().unwrap_or(name),
        data: args.data.as_deref().map(Table::read).transpose().map_err(Failure::data)?,
        images: args.images,
    };
    let kind = file.kind.clone();
    Ok(match kind.as_str() {
        kind if TrainedSpace::holds(kind) => Explorer::space(read(&args.model, file)?, options)?,
        kind if TrainedRegression::holds(kind) => Explorer::regression(read(&args.model, file)?, options)?,
        kind if TrainedSeries::holds(kind) => Explorer::series(read(&args.model, file)?, options)?,
        other => {
            return Err(Failure::data(format!(
                "{}: holds a `{other}`, which this command does not know",
                args.model.display()
            )));
        }
    })
}

fn read<T: Store>(path: &Path, file: ModelFile) -> Outcome<T> {
    in_file(path, T::from_file(file).and_then(Store::verified)).map_err(Failure::data)
}

/// Asks the desktop to open the address; whether there is one that could be asked.
fn open(address: &str) -> bool {
    let (program, before): (&str, &[&str]) = if cfg!(target_os = "macos") {
        ("open", &[])
    } else if cfg!(windows) {
        ("rundll32", &["url.dll,FileProtocolHandler"])
    } else if ["DISPLAY", "WAYLAND_DISPLAY"].iter().any(|name| std::env::var_os(name).is_some()) {
        ("xdg-open", &[])
    } else {
        return false;
    };
    let mut command = Command::new(program);
    command.args(before).arg(address).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.spawn().is_ok()
}
