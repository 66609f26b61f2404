mod deeper;
mod forecast;
mod lead;
mod margins;
mod products;
mod surface;
