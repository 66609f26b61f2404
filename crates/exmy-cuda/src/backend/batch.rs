//! Launches that are put together and begun as one graph. Beginning a graph costs the host and the device
//! less than beginning its kernels one by one, and the launches of a training step are those of the step
//! before.
//!
//! A [`Batch`] holds what a stream was asked and has not begun. [`Graphs::start`] begins it: one launch after
//! the other where it has not seen such a batch, else as a graph, whose parameters it changes where they are
//! others. Batches are alike if kernels, grids and the sizes of parameters are. What is begun, and in which
//! order, does not depend on that.

use std::collections::{HashMap, HashSet};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::ops::Range;

use super::Grid;
use crate::Result;

/// How many launches a batch has at most: the device begins with the first ones early.
pub(crate) const MOST: usize = 64;
/// Fewer than that are no graph.
const FEW: usize = 4;
/// Graphs of one kind at most; among these the one is taken that needs the fewest changes.
const ALIKE: usize = 16;
/// Graphs of a stream at most, and kinds of batches that it remembers. Beyond that it forgets all.
const GRAPHS: usize = 256;
const KINDS: usize = 4096;

/// One launch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Node {
    /// A kernel, by the driver's handle of it, and where its parameters end in the list of ends.
    Kernel { function: usize, grid: Grid, first: usize, count: usize },
    /// So many bytes of one value.
    Fill { byte: u8, bytes: usize },
}

/// Launches in order, and their parameters; a fill has its address.
#[derive(Clone, Debug, Default)]
pub(crate) struct Batch {
    nodes: Vec<Node>,
    names: Vec<&'static str>,
    /// Where each parameter ends, and where those of each launch do.
    ends: Vec<usize>,
    last: Vec<usize>,
    bytes: Vec<u8>,
}

impl Batch {
    pub(crate) fn kernel(
        &mut self,
        (name, function): (&'static str, usize),
        grid: Grid,
        args: &[&[u8]],
    ) {
        let (first, count) = (self.ends.len(), args.len());
        args.iter().for_each(|arg| self.parameter(arg));
        self.push(name, Node::Kernel { function, grid, first, count });
    }

    pub(crate) fn fill(&mut self, address: u64, byte: u8, bytes: usize) {
        self.parameter(&address.to_ne_bytes());
        self.push("fill", Node::Fill { byte, bytes });
    }

    fn parameter(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
        self.ends.push(self.bytes.len());
    }

    fn push(&mut self, name: &'static str, node: Node) {
        self.nodes.push(node);
        self.names.push(name);
        self.last.push(self.bytes.len());
    }

    pub(crate) fn clear(&mut self) {
        self.nodes.clear();
        self.names.clear();
        self.ends.clear();
        self.last.clear();
        self.bytes.clear();
    }

    pub(crate) fn len(&self) -> usize {
        self.nodes.len()
    }

    pub(crate) fn node(&self, at: usize) -> Node {
        self.nodes[at]
    }

    pub(crate) fn name(&self, at: usize) -> &'static str {
        self.names[at]
    }

    /// All bytes of a launch's parameters.
    pub(crate) fn bytes(&self, at: usize) -> &[u8] {
        let start = if at == 0 { 0 } else { self.last[at - 1] };
        &self.bytes[start..self.last[at]]
    }

    /// A kernel's parameters, one by one.
    pub(crate) fn args(&self, first: usize, count: usize) -> impl Iterator<Item = &[u8]> {
        (first..first + count).map(|at| {
            let start = if at == 0 { 0 } else { self.ends[at - 1] };
            &self.bytes[start..self.ends[at]]
        })
    }

    fn is_like(&self, other: &Self) -> bool {
        self.nodes == other.nodes && self.ends == other.ends
    }

    fn kind(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        (&self.nodes, &self.ends).hash(&mut hasher);
        hasher.finish()
    }

    /// The launches whose parameters are others than in a batch of the same kind.
    fn changes<'a>(&'a self, other: &'a Self) -> impl Iterator<Item = usize> + 'a {
        (0..self.len()).filter(|&at| self.bytes(at) != other.bytes(at))
    }

    /// Takes over the parameters of a launch of a batch of the same kind.
    fn take(&mut self, at: usize, other: &Self) {
        let range: Range<usize> = if at == 0 { 0 } else { self.last[at - 1] }..self.last[at];
        self.bytes[range.clone()].copy_from_slice(&other.bytes[range]);
    }
}

/// What a device does with batches.
pub(crate) trait Starter {
    type Graph;
    /// Begins one launch.
    fn one(&self, batch: &Batch, at: usize) -> Result<()>;
    /// A graph of all launches, one after the other.
    fn make(&self, batch: &Batch) -> Result<Self::Graph>;
    /// Gives a launch of a graph other parameters, from its next beginning on.
    fn change(&self, graph: &mut Self::Graph, batch: &Batch, at: usize) -> Result<()>;
    /// Begins a graph.
    fn all(&self, graph: &Self::Graph) -> Result<()>;
    /// Waits until no graph is at work.
    fn settle(&self) -> Result<()>;
}

/// A graph, and the parameters that it has.
#[derive(Debug)]
struct KnownGraph<G> {
    graph: G,
    batch: Batch,
}

/// The graphs of a stream, by the kind of their batch.
#[derive(Debug)]
pub(crate) struct Graphs<G> {
    made: HashMap<u64, Vec<KnownGraph<G>>>,
    count: usize,
    seen: HashSet<u64>,
}

impl<G> Default for Graphs<G> {
    fn default() -> Self {
        Self { made: HashMap::new(), count: 0, seen: HashSet::new() }
    }
}

impl<G> Graphs<G> {
    /// Begins a batch.
    pub(crate) fn start(&mut self, batch: &Batch, on: &impl Starter<Graph = G>) -> Result<()> {
        let one_by_one = || (0..batch.len()).try_for_each(|at| on.one(batch, at));
        if batch.len() < FEW {
            return one_by_one();
        }
        let kind = batch.kind();
        if !self.is_known(kind) {
            return one_by_one();
        }
        if self.count >= GRAPHS {
            on.settle()?;
            self.made.clear();
            self.count = 0;
        }
        let alike = self.made.entry(kind).or_default();
        let fewest = alike
            .iter()
            .enumerate()
            .filter(|(_, made)| made.batch.is_like(batch))
            .map(|(i, made)| (batch.changes(&made.batch).count(), i))
            .min();
        match fewest {
            Some((changes, i)) if 4 * changes <= batch.len() || alike.len() >= ALIKE => {
                let made = &mut alike[i];
                let others: Vec<usize> = batch.changes(&made.batch).collect();
                for at in others {
                    on.change(&mut made.graph, batch, at)?;
                    made.batch.take(at, batch);
                }
                on.all(&made.graph)
            }
            _ => {
                let graph = on.make(batch)?;
                on.all(&graph)?;
                alike.push(KnownGraph { graph, batch: batch.clone() });
                self.count += 1;
                Ok(())
            }
        }
    }

    /// Whether there was such a batch before.
    fn is_known(&mut self, kind: u64) -> bool {
        if self.seen.len() >= KINDS {
            self.seen.clear();
        }
        !self.seen.insert(kind)
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use super::*;

    /// What a launch is: its node without places in lists, and its parameters.
    type Asked = (usize, Vec<Vec<u8>>);

    fn asked(batch: &Batch, at: usize) -> Asked {
        match batch.node(at) {
            Node::Kernel { function, first, count, .. } => {
                (function, batch.args(first, count).map(<[u8]>::to_vec).collect())
            }
            Node::Fill { byte, bytes } => {
                (bytes << 8 | byte as usize, vec![batch.bytes(at).to_vec()])
            }
        }
    }

    /// Writes down what it is asked to begin.
    #[derive(Default)]
    struct Paper {
        begun: RefCell<Vec<Asked>>,
        made: RefCell<usize>,
        changed: RefCell<usize>,
    }

    impl Starter for Paper {
        type Graph = Vec<Asked>;

        fn one(&self, batch: &Batch, at: usize) -> Result<()> {
            self.begun.borrow_mut().push(asked(batch, at));
            Ok(())
        }

        fn make(&self, batch: &Batch) -> Result<Vec<Asked>> {
            *self.made.borrow_mut() += 1;
            Ok((0..batch.len()).map(|at| asked(batch, at)).collect())
        }

        fn change(&self, graph: &mut Vec<Asked>, batch: &Batch, at: usize) -> Result<()> {
            *self.changed.borrow_mut() += 1;
            assert_ne!(graph[at], asked(batch, at), "a change that is none");
            graph[at] = asked(batch, at);
            Ok(())
        }

        fn all(&self, graph: &Vec<Asked>) -> Result<()> {
            self.begun.borrow_mut().extend_from_slice(graph);
            Ok(())
        }

        fn settle(&self) -> Result<()> {
            Ok(())
        }
    }

    /// `len` kernels, the numbers of which and of whose parameters begin with `kernel` and `value`.
    fn batch(len: usize, kernel: usize, value: u32) -> Batch {
        let mut batch = Batch::default();
        for i in 0..len {
            let (x, y) = ((value + i as u32).to_ne_bytes(), (i as u64).to_ne_bytes());
            match i % 5 {
                4 => batch.fill(0x1000 + u64::from(value), 0, 16 * i),
                _ => batch.kernel(("k", kernel + i), Grid::new(1, 32), &[&x, &y]),
            }
        }
        batch
    }

    #[test]
    fn what_is_begun_is_what_was_asked() {
        let (paper, mut graphs) = (Paper::default(), Graphs::default());
        let mut all = Vec::new();
        for step in 0..6_u32 {
            // Layers of one kind, one whose last launch changes, one too short, and one of another kind.
            let mut last = batch(9, 700, 5);
            last.kernel(("k", 1), Grid::new(1, 32), &[&step.to_ne_bytes()]);
            let batches =
                [batch(12, 0, 100), batch(12, 0, 200), last, batch(3, 0, 0), batch(12, 1, 100)];
            for batch in batches {
                all.extend((0..batch.len()).map(|at| asked(&batch, at)));
                graphs.start(&batch, &paper).unwrap();
            }
        }
        assert_eq!(*paper.begun.borrow(), all);
        // Two of the first kind: at its first sight the second layer has a graph, then the first one, too.
        assert_eq!((*paper.made.borrow(), *paper.changed.borrow()), (4, 4));
    }

    #[test]
    fn kinds_differ_by_kernel_grid_and_sizes() {
        let base = batch(5, 0, 1);
        assert!(base.is_like(&batch(5, 0, 9)) && base.kind() == batch(5, 0, 9).kind());
        for other in [batch(6, 0, 1), batch(5, 1, 1)] {
            assert!(!base.is_like(&other) && base.kind() != other.kind());
        }
        let (mut wide, mut tall) = (base.clone(), base.clone());
        wide.kernel(("k", 1), Grid::new(1, 32), &[&[0; 8]]);
        tall.kernel(("k", 1), Grid::new(2, 32), &[&[0; 8]]);
        let mut halves = base.clone();
        halves.kernel(("k", 1), Grid::new(1, 32), &[&[0; 4], &[0; 4]]);
        assert!(!wide.is_like(&tall) && !wide.is_like(&halves));
    }

    /// Parameters that are never the same again cost at most a few graphs, and those are forgotten in time.
    #[test]
    fn graphs_are_few() {
        let (paper, mut graphs) = (Paper::default(), Graphs::default());
        for value in 0..100 {
            graphs.start(&batch(8, 0, 1000 * value), &paper).unwrap();
        }
        assert_eq!(*paper.made.borrow(), ALIKE);
        for kernel in 0..1000 {
            for _ in 0..2 {
                graphs.start(&batch(8, 10 * kernel, 0), &paper).unwrap();
            }
            assert!(graphs.count <= GRAPHS);
            assert_eq!(graphs.count, graphs.made.values().map(Vec::len).sum::<usize>());
        }
    }
}
