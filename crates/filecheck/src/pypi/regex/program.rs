//! A pattern as steps of a machine that tries and goes back.

use super::Set;
use super::parse::Node;
use crate::{Certain, undecided};

const MOST_STEPS: usize = 20_000;

/// A step. Numbers are those of other steps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    Set(Set),
    /// Characters of a set, as many as possible or as few as possible.
    Span {
        set: Set,
        least: u32,
        most: Option<u32>,
        is_lazy: bool,
    },
    /// The first one, and if that leads nowhere, the other one.
    Either(usize, usize),
    Jump(usize),
    Begin(usize),
    Finish(usize),
    Again(usize),
    LineStart,
    LineEnd,
    Start,
    End,
    Behind(Set),
    Matched,
}

pub(super) fn compile(node: &Node) -> Certain<Vec<Step>> {
    let mut steps = Vec::new();
    add(node, &mut steps)?;
    steps.push(Step::Matched);
    Ok(steps)
}

fn add(node: &Node, steps: &mut Vec<Step>) -> Certain<()> {
    if steps.len() > MOST_STEPS {
        return undecided("a long expression");
    }
    match node {
        Node::Set(set) => steps.push(Step::Set(*set)),
        Node::Sequence(nodes) => nodes.iter().try_for_each(|node| add(node, steps))?,
        Node::Choice(nodes) => choice(nodes, steps)?,
        Node::Group(number, node) => {
            steps.push(Step::Begin(*number));
            add(node, steps)?;
            steps.push(Step::Finish(*number));
        }
        Node::Repeat { node, least, most, is_lazy } => match **node {
            Node::Set(set) => {
                steps.push(Step::Span { set, least: *least, most: *most, is_lazy: *is_lazy });
            }
            _ => repeat(node, *least, *most, steps)?,
        },
        Node::Again(group) => steps.push(Step::Again(*group)),
        Node::LineStart => steps.push(Step::LineStart),
        Node::LineEnd => steps.push(Step::LineEnd),
        Node::Start => steps.push(Step::Start),
        Node::End => steps.push(Step::End),
        Node::Behind(set) => steps.push(Step::Behind(*set)),
    }
    Ok(())
}

fn choice(nodes: &[Node], steps: &mut Vec<Step>) -> Certain<()> {
    let mut ends = Vec::new();
    for (index, node) in nodes.iter().enumerate() {
        let at = steps.len();
        let is_last = index + 1 == nodes.len();
        if !is_last {
            steps.push(Step::Either(at + 1, 0));
        }
        add(node, steps)?;
        if !is_last {
            ends.push(steps.len());
            steps.push(Step::Jump(0));
            steps[at] = Step::Either(at + 1, steps.len());
        }
    }
    let end = steps.len();
    ends.into_iter().for_each(|at| steps[at] = Step::Jump(end));
    Ok(())
}

/// Adds a greedy repetition of a group that is never empty.
fn repeat(node: &Node, least: u32, most: Option<u32>, steps: &mut Vec<Step>) -> Certain<()> {
    for _ in 0..least {
        add(node, steps)?;
    }
    let Some(most) = most else {
        let at = steps.len();
        steps.push(Step::Jump(0));
        add(node, steps)?;
        steps.push(Step::Jump(at));
        steps[at] = Step::Either(at + 1, steps.len());
        return Ok(());
    };
    let mut starts = Vec::new();
    for _ in least..most {
        starts.push(steps.len());
        steps.push(Step::Jump(0));
        add(node, steps)?;
    }
    let end = steps.len();
    starts.into_iter().for_each(|at| steps[at] = Step::Either(at + 1, end));
    Ok(())
}
