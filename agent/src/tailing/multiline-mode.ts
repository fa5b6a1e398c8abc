// How the lines of a group end: a file of its own, because resources of the operator name these modes without loading the rest.

export const multilineModes = ['continue_through', 'continue_past', 'halt_before', 'halt_with', 'end_with'] as const
export type MultilineMode = (typeof multilineModes)[number]
