//! The driver's graphs: a batch of launches, one after the other, that is begun by one call.

#![allow(unsafe_code)]

use std::ffi::c_void;
use std::ptr;

use cudarc::driver::sys;

use super::{Gpu, locked};
use crate::Result;
use crate::backend::batch::{Batch, Node, Starter};

/// A graph as it was put together, the form in which it is begun, and its launches.
#[derive(Debug)]
pub(super) struct Graph {
    graph: sys::CUgraph,
    ready: sys::CUgraphExec,
    nodes: Vec<sys::CUgraphNode>,
}

// SAFETY: the driver's handles may be used from any thread; one at a time does, as `&mut` and the stream's
// lock see to.
unsafe impl Send for Graph {}

impl Drop for Graph {
    fn drop(&mut self) {
        // SAFETY: the handles are this value's own, or null where they were never made. The driver keeps what
        // is at work until it is done.
        unsafe {
            if !self.ready.is_null() {
                sys::cuGraphExecDestroy(self.ready);
            }
            if !self.graph.is_null() {
                sys::cuGraphDestroy(self.graph);
            }
        }
    }
}

/// The addresses of a kernel's parameters.
fn pointers(batch: &Batch, first: usize, count: usize) -> Vec<*mut c_void> {
    batch.args(first, count).map(|arg| arg.as_ptr().cast_mut().cast()).collect()
}

/// What a launch is to the driver.
enum Params {
    Kernel(sys::CUDA_KERNEL_NODE_PARAMS, Vec<*mut c_void>),
    Fill(sys::CUDA_MEMSET_NODE_PARAMS),
}

fn params(batch: &Batch, at: usize) -> Params {
    match batch.node(at) {
        Node::Kernel { function, grid, first, count } => {
            let mut pointers = pointers(batch, first, count);
            let [x, y, z] = grid.blocks;
            let params = sys::CUDA_KERNEL_NODE_PARAMS {
                func: function as sys::CUfunction,
                gridDimX: x,
                gridDimY: y,
                gridDimZ: z,
                blockDimX: grid.threads,
                blockDimY: 1,
                blockDimZ: 1,
                sharedMemBytes: grid.shared,
                kernelParams: pointers.as_mut_ptr(),
                extra: ptr::null_mut(),
                kern: ptr::null_mut(),
                ctx: ptr::null_mut(),
            };
            Params::Kernel(params, pointers)
        }
        Node::Fill { byte, bytes } => Params::Fill(sys::CUDA_MEMSET_NODE_PARAMS {
            dst: address(batch, at),
            pitch: 0,
            value: u32::from(byte),
            elementSize: 1,
            width: bytes,
            height: 1,
        }),
    }
}

/// Where a fill begins.
fn address(batch: &Batch, at: usize) -> u64 {
    u64::from_ne_bytes(batch.bytes(at).try_into().expect("a fill has an address"))
}

impl Gpu {
    /// A launch whose failure the driver may report now or later.
    fn begins(&self, name: &'static str) {
        *locked(&self.last) = name;
    }
}

/// A stream of a device, on which launches and graphs begin.
pub(super) struct Queue<'a> {
    pub(super) gpu: &'a Gpu,
    pub(super) stream: sys::CUstream,
}

impl Starter for Queue<'_> {
    type Graph = Graph;

    fn one(&self, batch: &Batch, at: usize) -> Result<()> {
        self.gpu.begins(batch.name(at));
        match batch.node(at) {
            Node::Kernel { function, grid, first, count } => {
                let mut pointers = pointers(batch, first, count);
                let ([x, y, z], function) = (grid.blocks, function as sys::CUfunction);
                let pointers = pointers.as_mut_ptr();
                let none = ptr::null_mut();
                // SAFETY: who asked for the launch promised that the parameters are the kernel's and that it
                // stays inside of its memory; the driver copies the parameters before it returns.
                self.gpu.check(unsafe {
                    let (threads, shared) = (grid.threads, grid.shared);
                    sys::cuLaunchKernel(
                        function,
                        x,
                        y,
                        z,
                        threads,
                        1,
                        1,
                        shared,
                        self.stream,
                        pointers,
                        none,
                    )
                })
            }
            Node::Fill { byte, bytes } => {
                let to = address(batch, at);
                // SAFETY: the caller's buffer has as many bytes.
                self.gpu.check(unsafe { sys::cuMemsetD8Async(to, byte, bytes, self.stream) })
            }
        }
    }

    fn make(&self, batch: &Batch) -> Result<Graph> {
        let mut made = Graph { graph: ptr::null_mut(), ready: ptr::null_mut(), nodes: Vec::new() };
        let gpu = self.gpu;
        // SAFETY: the context is current. Handles are written to variables of their types; a node depends on
        // the one before; the driver copies parameters, whose pointers live until it returns.
        unsafe {
            gpu.check(sys::cuGraphCreate(&mut made.graph, 0))?;
            for at in 0..batch.len() {
                gpu.begins(batch.name(at));
                let (mut node, before) = (ptr::null_mut(), made.nodes.last().copied());
                let (after, count) =
                    (before.as_ref().map_or(ptr::null(), ptr::from_ref), at.min(1));
                gpu.check(match params(batch, at) {
                    Params::Kernel(params, _pointers) => {
                        sys::cuGraphAddKernelNode_v2(&mut node, made.graph, after, count, &params)
                    }
                    Params::Fill(params) => sys::cuGraphAddMemsetNode(
                        &mut node,
                        made.graph,
                        after,
                        count,
                        &params,
                        gpu.context,
                    ),
                })?;
                made.nodes.push(node);
            }
            gpu.check(sys::cuGraphInstantiateWithFlags(&mut made.ready, made.graph, 0))?;
        }
        Ok(made)
    }

    fn change(&self, graph: &mut Graph, batch: &Batch, at: usize) -> Result<()> {
        self.gpu.begins(batch.name(at));
        let node = graph.nodes[at];
        // SAFETY: the node is one of the graph's and of the same kernel and sizes; a beginning that is at
        // work keeps the parameters that it had.
        self.gpu.check(unsafe {
            match params(batch, at) {
                Params::Kernel(params, _pointers) => {
                    sys::cuGraphExecKernelNodeSetParams_v2(graph.ready, node, &params)
                }
                Params::Fill(params) => {
                    let context = self.gpu.context;
                    sys::cuGraphExecMemsetNodeSetParams(graph.ready, node, &params, context)
                }
            }
        })
    }

    fn all(&self, graph: &Graph) -> Result<()> {
        // SAFETY: the graph is ready, and the stream is alive.
        self.gpu.check(unsafe { sys::cuGraphLaunch(graph.ready, self.stream) })
    }

    fn settle(&self) -> Result<()> {
        // SAFETY: the stream is alive.
        self.gpu.check(unsafe { sys::cuStreamSynchronize(self.stream) })
    }
}
