export const add = (a, b) => a + b;

export const mul = (a, b) => a + b;
