//! Which step waits for which: the order in which steps can run, or the circles that keep them from it.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};

/// The dependencies between steps, by position. Names that are no step, and a step's own, are left out.
#[derive(Clone, Debug)]
pub struct StepGraph {
    /// For each step the steps that it waits for.
    waits_for: Vec<Vec<usize>>,
}

impl StepGraph {
    /// Builds the graph from the names of the steps and the names that each depends on.
    pub fn new<'s>(steps: impl Iterator<Item = (&'s str, &'s [String])> + Clone) -> Self {
        let mut position: HashMap<&str, usize> = HashMap::new();
        for (index, (name, _)) in steps.clone().enumerate() {
            position.entry(name).or_insert(index);
        }
        let waits_for = steps
            .enumerate()
            .map(|(index, (_, names))| {
                let mut waits: Vec<usize> = names
                    .iter()
                    .filter_map(|name| position.get(name.as_str()).copied())
                    .collect();
                waits.sort_unstable();
                waits.dedup();
                waits.retain(|other| *other != index);
                waits
            })
            .collect();
        Self { waits_for }
    }

    /// The steps in an order in which each comes after those it waits for; among free ones the earlier written first.
    ///
    /// # Errors
    ///
    /// The circles, each as the positions of its steps in the order of waiting.
    pub fn order(&self) -> Result<Vec<usize>, Vec<Vec<usize>>> {
        let mut open: Vec<usize> = self.waits_for.iter().map(Vec::len).collect();
        let mut followers: Vec<Vec<usize>> = vec![Vec::new(); open.len()];
        for (step, waits) in self.waits_for.iter().enumerate() {
            for earlier in waits {
                followers[*earlier].push(step);
            }
        }
        let is_free = |(step, open): (usize, &usize)| (*open == 0).then_some(Reverse(step));
        let mut free: BinaryHeap<Reverse<usize>> =
            open.iter().enumerate().filter_map(is_free).collect();
        let mut order = Vec::with_capacity(open.len());
        while let Some(Reverse(step)) = free.pop() {
            order.push(step);
            for follower in &followers[step] {
                open[*follower] -= 1;
                if open[*follower] == 0 {
                    free.push(Reverse(*follower));
                }
            }
        }
        if order.len() == open.len() {
            Ok(order)
        } else {
            Err(self.circles(&open))
        }
    }

    /// Among steps that never became free each waits for another such step. Following one of these from step to step
    /// must come round, so every walk ends in a circle or in a walk that was made before.
    fn circles(&self, open: &[usize]) -> Vec<Vec<usize>> {
        let mut walk_of: Vec<Option<usize>> = vec![None; open.len()];
        let mut circles = Vec::new();
        for start in 0..open.len() {
            let mut path = Vec::new();
            let mut here = (open[start] > 0).then_some(start);
            while let Some(step) = here.filter(|step| walk_of[*step].is_none()) {
                walk_of[step] = Some(start);
                path.push(step);
                here = self.waits_for[step]
                    .iter()
                    .copied()
                    .find(|other| open[*other] > 0);
            }
            let closing = here.filter(|step| walk_of[*step] == Some(start));
            if let Some(begin) =
                closing.and_then(|step| path.iter().position(|other| *other == step))
            {
                circles.push(path.split_off(begin));
            }
        }
        circles
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn graph(steps: &[(&str, &[&str])]) -> StepGraph {
        let owned: Vec<(&str, Vec<String>)> = steps
            .iter()
            .map(|(name, waits)| (*name, waits.iter().map(|&wait| wait.to_owned()).collect()))
            .collect();
        StepGraph::new(owned.iter().map(|(name, waits)| (*name, waits.as_slice())))
    }

    #[test]
    fn steps_come_after_what_they_wait_for_and_otherwise_as_written() {
        let diamond = graph(&[
            ("end", &["left", "right"]),
            ("right", &["start"]),
            ("left", &["start"]),
            ("start", &[]),
        ]);
        assert_eq!(diamond.order(), Ok(vec![3, 1, 2, 0]));
        assert_eq!(graph(&[("a", &[]), ("b", &[])]).order(), Ok(vec![0, 1]));
        assert_eq!(graph(&[]).order(), Ok(vec![]));
    }

    #[test]
    fn what_is_no_step_is_left_out() {
        assert_eq!(
            graph(&[("a", &["a", "nobody"]), ("b", &["a", "a"])]).order(),
            Ok(vec![0, 1])
        );
    }

    #[test]
    fn every_separate_circle_is_found() {
        let steps = graph(&[
            ("a", &["b"]),
            ("b", &["c"]),
            ("c", &["a"]),
            ("behind", &["c"]),
            ("x", &["y"]),
            ("y", &["x"]),
            ("free", &[]),
        ]);
        assert_eq!(steps.order(), Err(vec![vec![0, 1, 2], vec![4, 5]]));
    }

    #[test]
    fn a_long_chain_needs_no_stack() {
        let names: Vec<String> = (0..50_000).map(|n| n.to_string()).collect();
        let waits: Vec<Vec<String>> = (0..50_000)
            .map(|n| {
                names
                    .get(n + 1)
                    .or(names.first())
                    .cloned()
                    .into_iter()
                    .collect()
            })
            .collect();
        let steps = StepGraph::new(
            names
                .iter()
                .map(String::as_str)
                .zip(waits.iter().map(Vec::as_slice)),
        );
        assert_eq!(steps.order().unwrap_err()[0].len(), 50_000);
    }

    proptest! {
        #[test]
        fn there_is_an_order_exactly_when_there_is_no_circle(
            edges in prop::collection::vec((0..7usize, 0..7usize), 0..12),
        ) {
            let names: Vec<String> = (0..7).map(|n| n.to_string()).collect();
            let waits: Vec<Vec<String>> = (0..7)
                .map(|n| edges.iter().filter(|(from, _)| *from == n).map(|(_, to)| to.to_string()).collect())
                .collect();
            let steps = StepGraph::new(names.iter().map(String::as_str).zip(waits.iter().map(Vec::as_slice)));
            match steps.order() {
                Ok(order) => {
                    let place = |step: usize| order.iter().position(|other| *other == step).unwrap();
                    for (from, to) in edges.iter().filter(|(from, to)| from != to) {
                        prop_assert!(place(*to) < place(*from));
                    }
                }
                Err(circles) => {
                    prop_assert!(!circles.is_empty());
                    for circle in circles {
                        for (index, step) in circle.iter().enumerate() {
                            let next = circle[(index + 1) % circle.len()];
                            prop_assert!(edges.contains(&(*step, next)), "{:?}", circle);
                        }
                    }
                }
            }
        }
    }
}
