//! What shells and `man` need to know of the program, made from its command line.

use clap::{Args, Command};
use clap_complete::Shell;
use clap_mangen::Man;
use std::io::{self, Write};
use std::process::ExitCode;

/// Prints a completion script, such as for `source <(onggi completions bash)`.
#[derive(Args)]
pub struct CompletionsArgs {
    /// The shell.
    #[arg(value_enum)]
    shell: Shell,
}

/// Prints a manual page: `onggi man import | man -l -`.
#[derive(Args)]
pub struct ManArgs {
    /// The command; without one, the page of the program.
    #[arg(value_name = "COMMAND")]
    command: Option<String>,
    /// Prints the names of all pages.
    #[arg(long, conflicts_with = "command")]
    list: bool,
}

/// Runs `onggi completions`.
pub fn completions(args: &CompletionsArgs, mut program: Command) -> ExitCode {
    let mut script = Vec::new();
    let name = program.get_name().to_owned();
    clap_complete::generate(args.shell, &mut program, name, &mut script);
    print(&script)
}

/// Runs `onggi man`. Exits with status 2 for a command that the program does not have.
pub fn man(args: &ManArgs, program: Command) -> ExitCode {
    let pages = pages(program);
    if args.list {
        return print(pages.iter().map(|page| page.get_name().to_owned() + "\n").collect::<String>().as_bytes());
    }
    let name = match args.command.as_deref() {
        None | Some("onggi") => "onggi".to_owned(),
        Some(command) => format!("onggi-{command}"),
    };
    let Some(page) = pages.into_iter().find(|page| page.get_name() == name) else {
        eprintln!("onggi man: there is no page {name}; see onggi man --list");
        return ExitCode::from(2);
    };
    let mut text = Vec::new();
    match Man::new(page).render(&mut text) {
        Ok(()) => print(&text),
        Err(error) => {
            eprintln!("onggi man: {error}");
            ExitCode::from(2)
        }
    }
}

/// The program, then each of its commands as a program of its own name.
fn pages(mut program: Command) -> Vec<Command> {
    program = program.disable_help_subcommand(true);
    program.build();
    let commands = program.get_subcommands().map(|command| {
        let name = format!("onggi-{}", command.get_name());
        command.clone().name(name.clone()).display_name(name).bin_name(format!("onggi {}", command.get_name()))
    });
    let commands: Vec<Command> = commands.collect();
    std::iter::once(program).chain(commands).collect()
}

/// Prints to standard output; a reader that has seen enough is no failure.
fn print(bytes: &[u8]) -> ExitCode {
    match io::stdout().write_all(bytes) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            eprintln!("onggi: standard output: {error}");
            ExitCode::from(2)
        }
        _ => ExitCode::SUCCESS,
    }
}
