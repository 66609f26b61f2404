mod bias;
mod causes;
mod interventions;
mod last_bin;
mod laws;
mod new_seeds;
mod pairs;
mod search;
