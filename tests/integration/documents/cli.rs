//! The part of `docs/cli.md` that is made from the commands.

use agents::{cli, kit::exit::Exit};
use clap::{Arg, ArgAction, Command};

use super::bind_parts;

/// Commands with more flags than this are servers; their settings have a document of their own.
const MANY: usize = 30;

#[test]
fn the_document_of_the_command_line_shows_every_command() {
    let mut root = cli::command(None);
    root.build();
    let mut commands = String::new();
    for command in root.get_subcommands() {
        show(command, "agents", &mut commands);
    }
    let parts = [("commands", commands), ("exit codes", exit_codes())];
    bind_parts("docs/cli.md", &parts);
}

fn exit_codes() -> String {
    let mut text = "| Code | Meaning |\n|---|---|\n".to_owned();
    for exit in Exit::ALL {
        text += &format!("| {} | {} |\n", exit.code(), exit.meaning());
    }
    text
}

fn show(command: &Command, above: &str, text: &mut String) {
    if command.is_hide_set() || command.get_name() == "help" {
        return;
    }
    let name = format!("{above} {}", command.get_name());
    let about = command.get_about().map(ToString::to_string);
    *text += &format!("### `{name}`\n\n{}\n\n", about.unwrap_or_default());
    let arguments: Vec<&Arg> = command
        .get_arguments()
        .filter(|argument| !argument.is_hide_set() && argument.get_id() != "help")
        .collect();
    if arguments.len() > MANY {
        *text += "Every setting is a flag: see [configuration.md](configuration.md).\n\n";
    } else if !arguments.is_empty() {
        *text += "| Flag or argument | Meaning |\n|---|---|\n";
        for argument in arguments {
            *text += &format!("| `{}` | {} |\n", written(argument), meaning(argument));
        }
        text.push('\n');
    }
    for below in command.get_subcommands() {
        show(below, &name, text);
    }
}

/// How an argument is written.
fn written(argument: &Arg) -> String {
    let flags = [
        argument.get_short().map(|short| format!("-{short}")),
        argument.get_long().map(|long| format!("--{long}")),
    ];
    let flags: Vec<String> = flags.into_iter().flatten().collect();
    let takes = matches!(argument.get_action(), ArgAction::Set | ArgAction::Append);
    let values = argument.get_value_names().unwrap_or_default();
    let values: Vec<String> = values
        .iter()
        .map(|value| value.replace('|', "\\|"))
        .collect();
    let words = [flags.join(", "), values.join(" ")];
    let words = words.iter().filter(|word| !word.is_empty());
    match takes {
        true => words.cloned().collect::<Vec<_>>().join(" "),
        false => flags.join(", "),
    }
}

/// What an argument means, and what it may be.
fn meaning(argument: &Arg) -> String {
    let help = argument.get_long_help().or(argument.get_help());
    let mut text = help.map(ToString::to_string).unwrap_or_default();
    text = text.replace('\n', " ").replace('|', "\\|");
    if !text.ends_with('.') && !text.is_empty() {
        text.push('.');
    }
    let words = argument.get_possible_values();
    let is_switch = matches!(
        argument.get_action(),
        ArgAction::SetTrue | ArgAction::SetFalse
    );
    let words = words.iter().filter(|word| !word.is_hide_set());
    let words: Vec<String> = words.map(|word| format!("`{}`", word.get_name())).collect();
    if !words.is_empty() && !is_switch {
        text += &format!(" One of {}.", words.join(", "));
    }
    let defaults = argument.get_default_values();
    let defaults: Vec<_> = defaults
        .iter()
        .map(|value| value.to_string_lossy())
        .collect();
    if !defaults.is_empty() && !is_switch {
        text += &format!(" Default: `{}`.", defaults.join(" "));
    }
    text
}
