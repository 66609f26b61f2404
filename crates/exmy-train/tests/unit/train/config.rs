mod old;
