//! Threads: which messages answer which.
//!
//! The algorithm of Jamie Zawinski's mail readers, without its guessing by subject: the
//! ids in `References` (else `In-Reply-To`) are a chain of ancestors; a chain never
//! overrides a parent that is known already and never makes a loop; a message that is
//! not there lends its place to its only child, and holds several together.
//!
//! No recursion: a thread of a hundred thousand answers is only long.

use std::collections::HashMap;

/// One line of a list of threads.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ThreadLine {
    /// Steps from the top of its thread.
    pub depth: usize,
    /// Position among the messages; `None` stands for a message that is not there and
    /// that several of its answers share.
    pub message: Option<usize>,
}

/// A message's place in the threads.
#[derive(Clone, Copy, Debug)]
pub struct ThreadMember<'a> {
    /// Its Message-ID, if it has one.
    pub id: Option<&'a str>,
    /// Its ancestors, oldest first.
    pub references: &'a [String],
}

#[derive(Default)]
struct Container {
    message: Option<usize>,
    parent: Option<usize>,
    /// Somebody answered it, so it can be part of a loop.
    answered: bool,
    /// Filled in when all parents are known.
    children: Vec<usize>,
}

/// Steps upwards after which a thread counts as too long to be joined to another.
const STEPS_MAX: usize = 4096;

/// Groups messages into threads. Threads come in the order of their first message, and
/// so do the answers to one message.
pub fn threads(members: &[ThreadMember<'_>]) -> Vec<ThreadLine> {
    let containers = link(members);
    let order = first_messages(&containers);
    let mut roots: Vec<usize> =
        (0..containers.len()).filter(|&at| containers[at].parent.is_none()).collect();
    roots.sort_by_key(|&at| order[at]);
    let mut lines = Vec::with_capacity(members.len());
    let mut todo: Vec<(usize, usize)> = Vec::new();
    for root in roots {
        todo.push((root, 0));
        while let Some((at, depth)) = todo.pop() {
            let mut children: Vec<usize> = containers[at].children.clone();
            children.retain(|&child| order[child] != usize::MAX);
            children.sort_by_key(|&child| order[child]);
            let message = containers[at].message;
            // Missing: nothing below, or one answer that takes its place.
            let shown = message.is_some() || children.len() > 1;
            if shown {
                lines.push(ThreadLine { depth, message });
            }
            let below = depth + usize::from(shown);
            todo.extend(children.into_iter().rev().map(|child| (child, below)));
        }
    }
    lines
}

/// A container for every message and for every id that one refers to, linked.
fn link(members: &[ThreadMember<'_>]) -> Vec<Container> {
    let mut containers: Vec<Container> = Vec::new();
    let mut by_id: HashMap<&str, usize> = HashMap::new();
    let mut own = Vec::with_capacity(members.len());
    for (number, member) in members.iter().enumerate() {
        let known = member.id.and_then(|id| by_id.get(id).copied());
        // Of two messages with one id, the second is a message without id.
        let at = known.unwrap_or(containers.len());
        if known.is_none() {
            containers.push(Container::default());
            if let Some(id) = member.id {
                by_id.insert(id, at);
            }
        }
        let at = if containers[at].message.is_some() {
            containers.push(Container::default());
            containers.len() - 1
        } else {
            at
        };
        containers[at].message = Some(number);
        own.push(at);
    }
    for (member, &at) in members.iter().zip(&own) {
        let mut parent = None;
        for id in member.references {
            let ancestor = *by_id.entry(id).or_insert_with(|| {
                containers.push(Container::default());
                containers.len() - 1
            });
            if let Some(parent) = parent
                && containers[ancestor].parent.is_none()
            {
                adopt(&mut containers, parent, ancestor);
            }
            parent = Some(ancestor);
        }
        // The last reference is the parent, whatever others said of this message.
        if let Some(parent) = parent {
            let old = containers[at].parent.take();
            if !adopt(&mut containers, parent, at) {
                containers[at].parent = old;
            }
        }
    }
    for at in 0..containers.len() {
        if let Some(parent) = containers[at].parent {
            containers[parent].children.push(at);
        }
    }
    containers
}

/// Makes `child` an answer to `parent`, unless that would make a loop.
fn adopt(containers: &mut [Container], parent: usize, child: usize) -> bool {
    if parent == child {
        return false;
    }
    let mut above = containers[child].answered.then_some(parent);
    let mut steps = 0;
    while let Some(at) = above {
        steps += 1;
        if at == child || steps > STEPS_MAX {
            return false;
        }
        above = containers[at].parent;
    }
    containers[child].parent = Some(parent);
    containers[parent].answered = true;
    true
}

/// The first message in each container's tree; `usize::MAX` where there is none.
fn first_messages(containers: &[Container]) -> Vec<usize> {
    let mut first: Vec<usize> = containers
        .iter()
        .map(|container| container.message.unwrap_or(usize::MAX))
        .collect();
    // Parents before children, then backwards.
    let mut order: Vec<usize> =
        (0..containers.len()).filter(|&at| containers[at].parent.is_none()).collect();
    let mut at = 0;
    while at < order.len() {
        order.extend_from_slice(&containers[order[at]].children);
        at += 1;
    }
    for &at in order.iter().rev() {
        if let Some(parent) = containers[at].parent {
            first[parent] = first[parent].min(first[at]);
        }
    }
    first
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Messages as `id<-reference reference`; the threads as indented ids, `?` for a
    /// message that is not there.
    fn shown(messages: &[&str]) -> String {
        let parts: Vec<(&str, Vec<String>)> = messages
            .iter()
            .map(|message| {
                let (id, references) =
                    message.split_once("<-").unwrap_or((message, ""));
                (id, references.split_whitespace().map(str::to_owned).collect())
            })
            .collect();
        let members: Vec<ThreadMember<'_>> = parts
            .iter()
            .map(|(id, references)| ThreadMember {
                id: (!id.is_empty()).then_some(*id),
                references,
            })
            .collect();
        let lines = threads(&members);
        let placed = lines.iter().filter(|line| line.message.is_some()).count();
        assert_eq!(placed, members.len(), "every message has one place");
        let line = |line: &ThreadLine| {
            let id = line.message.map_or("?", |at| parts[at].0);
            format!("{}{id}", ".".repeat(line.depth))
        };
        lines.iter().map(line).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn answers_stand_below_what_they_answer() {
        assert_eq!(shown(&["a", "b<-a", "x", "c<-a b", "d<-a"]), "a .b ..c .d x");
        assert_eq!(shown(&["c<-a b", "b<-a", "a"]), "a .b ..c");
    }

    #[test]
    fn a_missing_message_holds_its_answers_together_or_makes_room() {
        assert_eq!(shown(&["b<-a", "c<-a"]), "? .b .c");
        assert_eq!(shown(&["b<-a", "c<-b"]), "b .c");
        assert_eq!(shown(&["d<-a b c", "a"]), "a .d");
    }

    #[test]
    fn loops_and_equal_ids_do_no_harm() {
        assert_eq!(shown(&["a<-b", "b<-a"]), "b .a");
        assert_eq!(shown(&["a<-a"]), "a");
        assert_eq!(shown(&["a", "a", "b<-a"]), "a .b a");
        assert_eq!(shown(&["", "<-a", "a"]), " a .");
    }

    #[test]
    fn a_very_long_thread_is_only_long() {
        let ids: Vec<String> = (0..20_000).map(|n| n.to_string()).collect();
        let before: Vec<Vec<String>> =
            (0..ids.len()).map(|n| ids[n.saturating_sub(1)..n].to_vec()).collect();
        let members: Vec<ThreadMember<'_>> = ids
            .iter()
            .zip(&before)
            .map(|(id, references)| ThreadMember { id: Some(id), references })
            .collect();
        let lines = threads(&members);
        assert_eq!(
            lines.last(),
            Some(&ThreadLine { depth: 19_999, message: Some(19_999) })
        );
    }
}
