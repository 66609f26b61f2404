mod counts;
mod distribution;
mod intervals;
mod power;
mod ranks;
mod survival;
