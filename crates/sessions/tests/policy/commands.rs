//! Commands under one rule each: what a trick must not reach, and what ordinary work must.

use agentwire_protocol::ApprovalMode;

use super::{AGENTS, is_allowed, policy, shell_questions};

const COMMANDS: &str = include_str!("../commands.txt");

/// A rule or the mode, and its commands, each with whether it runs unasked.
struct Group {
    head: &'static str,
    commands: Vec<(bool, &'static str)>,
}

fn groups() -> Vec<Group> {
    let mut groups: Vec<Group> = Vec::new();
    for line in COMMANDS.lines().filter(|line| !line.is_empty() && !line.starts_with("##")) {
        match line.split_once(' ').expect("a sign and a text") {
            ("@", head) => groups.push(Group { head, commands: Vec::new() }),
            (sign @ ("+" | "-"), command) => {
                groups.last_mut().expect("a head").commands.push((sign == "+", command));
            }
            (sign, _) => panic!("no such sign: {sign}"),
        }
    }
    groups
}

#[test]
fn every_command_is_judged_as_the_table_says() {
    let mut wrong = Vec::new();
    let mut count = 0;
    for Group { head, commands } in groups() {
        for agent in AGENTS {
            let policy = match head.split_once(' ') {
                Some(("allow", rule)) => policy(agent, ApprovalMode::Ask, &[rule], &[]),
                Some(("deny", rule)) => policy(agent, ApprovalMode::AutoAll, &["Bash"], &[rule]),
                _ => policy(agent, ApprovalMode::AskDangerous, &[], &[]),
            };
            for (runs, command) in &commands {
                count += 1;
                let questions = shell_questions(agent, command);
                let allowed = |question: &super::Question| is_allowed(&question.ask(&policy));
                let is_right = match runs {
                    true => questions.iter().any(allowed),
                    false => !questions.iter().any(allowed),
                };
                if !is_right {
                    wrong.push(format!("{} {head}: {command}", agent.as_str()));
                }
            }
        }
    }
    assert!(count > 2000, "{count} rows are run");
    assert!(wrong.is_empty(), "{} are judged otherwise:\n{}", wrong.len(), wrong.join("\n"));
}
