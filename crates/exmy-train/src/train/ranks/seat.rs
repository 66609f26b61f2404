//! A process's place among those that train together, as `torchrun` and Slurm tell it in the environment.
//!
//! | | `torchrun` | Slurm |
//! |---|---|---|
//! | rank, from 0 | `RANK` | `SLURM_PROCID` |
//! | how many | `WORLD_SIZE` | `SLURM_NTASKS` |
//! | rank on its machine | `LOCAL_RANK` | `SLURM_LOCALID` |
//! | where rank 0 is | `MASTER_ADDR` | the same, else the first of `SLURM_JOB_NODELIST` |
//! | its port | `MASTER_PORT` | the same, else 20000 + `SLURM_JOB_ID` mod 10000 |
//!
//! Where `torchrun` keeps a store at that port, which another variable says, it is one more. Who is alone
//! needs neither address nor port.

use super::tcp::Seat;
use exmy::error::{Error, Result};

/// How many processes train together at most.
const MOST: usize = 1 << 16;

/// Reads a variable of the environment.
type Variables<'a> = &'a dyn Fn(&str) -> Option<String>;

fn number(variables: Variables<'_>, name: &str) -> Result<Option<usize>> {
    let Some(text) = variables(name) else { return Ok(None) };
    text.trim().parse().map(Some).map_err(|_| {
        Error::new(format!("{name} is {text:?} in the environment, and a number is needed"))
    })
}

/// The first host of a list as Slurm writes it: `gpu[03-05,9],login` is gpu03.
pub fn first_host(list: &str) -> Option<String> {
    let end = list.find([',', '[']).unwrap_or(list.len());
    let (name, rest) = list.split_at(end);
    let Some(inside) = rest.strip_prefix('[') else {
        return (!name.is_empty()).then(|| name.to_owned());
    };
    let (inside, after) = inside.split_once(']')?;
    let first = inside.split([',', '-']).next().filter(|first| !first.is_empty())?;
    let suffix = after.split(',').next().unwrap_or("");
    Some(format!("{name}{first}{suffix}"))
}

/// The place that the environment says.
///
/// # Errors
/// Names the variable that is missing or makes no sense.
pub fn seat(variables: Variables<'_>) -> Result<Seat> {
    let names = match variables("RANK").is_some() || variables("WORLD_SIZE").is_some() {
        true => ["RANK", "WORLD_SIZE", "LOCAL_RANK"],
        false => ["SLURM_PROCID", "SLURM_NTASKS", "SLURM_LOCALID"],
    };
    let [rank, size, local] = names.map(|name| number(variables, name));
    let missing = |name: &str| {
        Error::new(format!("--ranks, and {name} is not in the environment")).hint(
            "torchrun sets RANK, WORLD_SIZE, LOCAL_RANK, MASTER_ADDR and MASTER_PORT, srun its SLURM_PROCID \
             and the like; see docs/clusters.md",
        )
    };
    let rank = rank?.ok_or_else(|| missing(names[0]))?;
    let size = size?.ok_or_else(|| missing(names[1]))?;
    if rank >= size {
        return Err(Error::new(format!("{} is {rank} and {} is {size}", names[0], names[1]))
            .hint("ranks count from 0"));
    }
    if size > MOST {
        return Err(Error::new(format!(
            "{} is {size}: no more than {MOST} train together",
            names[1]
        )));
    }
    let local = local?.unwrap_or(rank);
    if size == 1 {
        // Nobody is to be found.
        return Ok(Seat { rank, size, local, address: String::new() });
    }
    let listed = || variables("SLURM_JOB_NODELIST").as_deref().and_then(first_host);
    let host = variables("MASTER_ADDR").or_else(listed).ok_or_else(|| missing("MASTER_ADDR"))?;
    // The store that torchrun keeps there is in the way.
    let is_taken = variables("TORCHELASTIC_USE_AGENT_STORE").as_deref() == Some("True");
    let port = match number(variables, "MASTER_PORT")? {
        Some(port) => {
            let found = u16::try_from(port).ok().filter(|port| *port > 0);
            let free = if is_taken { found.and_then(|port| port.checked_add(1)) } else { found };
            free.ok_or_else(|| {
                let kept = if is_taken { ", torchrun keeps that for itself" } else { "" };
                Error::new(format!("MASTER_PORT is {port}{kept}, and ports are 1 to 65535"))
            })?
        }
        None => match number(variables, "SLURM_JOB_ID")? {
            Some(job) => 20_000 + (job % 10_000) as u16,
            None => return Err(missing("MASTER_PORT")),
        },
    };
    let host =
        if host.contains(':') && !host.starts_with('[') { format!("[{host}]") } else { host };
    Ok(Seat { rank, size, local, address: format!("{host}:{port}") })
}
