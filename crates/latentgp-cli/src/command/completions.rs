//! `latentgp completions SHELL` and `latentgp man [COMMAND]`.

use crate::args;
use crate::failure::{Failure, Outcome};
use crate::out;
use clap_complete::Shell;
use latentgp::data::nearest;

/// Which shell.
#[derive(clap::Args)]
#[command(before_help = "\
Examples:
  latentgp completions bash > ~/.local/share/bash-completion/completions/latentgp
  latentgp completions zsh > ~/.zfunc/_latentgp
  latentgp completions fish > ~/.config/fish/completions/latentgp.fish")]
pub struct Args {
    /// The shell
    #[arg(value_enum)]
    shell: Shell,
}

/// Which page.
#[derive(clap::Args)]
#[command(before_help = "\
Examples:
  latentgp man | man -l -
  latentgp man fit > latentgp-fit.1")]
pub struct ManArgs {
    /// A command; without one, the page of the program
    command: Option<String>,
}

/// Prints the completions.
pub fn run(args: &Args) -> Outcome {
    let mut page = Vec::new();
    clap_complete::generate(args.shell, &mut args::command(), "latentgp", &mut page);
    out::text(&String::from_utf8_lossy(&page))
}

/// Prints the page.
pub fn man(args: &ManArgs) -> Outcome {
    let mut command = args::command();
    command.build();
    let page = match &args.command {
        None => command,
        Some(name) => {
            let names: Vec<&str> = command.get_subcommands().map(|c| c.get_name()).collect();
            let Some(found) = command.find_subcommand(name) else {
                let hint = nearest(name, &names).map_or(String::new(), |n| format!("; did you mean `{n}`?"));
                return Err(Failure::usage(format!("there is no command `{name}`{hint}")));
            };
            found.clone()
        }
    };
    let mut text = Vec::new();
    clap_mangen::Man::new(page).render(&mut text).map_err(Failure::work)?;
    out::text(&String::from_utf8_lossy(&text))
}
