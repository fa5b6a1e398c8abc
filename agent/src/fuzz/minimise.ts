// Reduces a case with a problem as long as it still has a problem of the same kind.

import { tokenize } from '../remap/lexer.ts'
import { type Case, type Problem, runCase } from './case.ts'

export function minimised(
  test: Case,
  problem: Problem,
  timeoutMs: number,
  budgetMs: number,
): { test: Case; problem: Problem } {
  const end = Date.now() + budgetMs
  let best = test
  let shown = problem
  const tried = (candidate: Case): boolean => {
    if (Date.now() > end) return false
    const found = runCase(candidate, timeoutMs).problem
    if (found?.what !== problem.what) return false
    best = candidate
    shown = found
    return true
  }
  // One event is enough, unless the problem needs several runs.
  for (const event of test.events) if (tried({ ...best, events: [event] })) break
  let smaller = true
  while (smaller && Date.now() < end) {
    smaller = false
    for (const source of smallerSources(best.source)) {
      if (source !== best.source && tried({ ...best, source })) {
        smaller = true
        break
      }
    }
  }
  for (const [index, event] of best.events.entries()) {
    for (const name of Object.keys(event)) {
      const rest = Object.fromEntries(Object.entries(best.events[index] ?? {}).filter(([other]) => other !== name))
      tried({ ...best, events: best.events.map((kept, at) => (at === index ? rest : kept)) })
    }
  }
  tried({ ...best, metadata: {} })
  return { test: best, problem: shown }
}

/** The source without one line, or without a run of tokens, longest runs first. */
function* smallerSources(source: string): Generator<string> {
  const lines = source.split('\n')
  if (lines.length > 1) {
    for (let at = 0; at < lines.length; at++) yield lines.filter((_, index) => index !== at).join('\n')
  }
  let tokens: { start: number; end: number }[]
  try {
    tokens = tokenize(source).filter((token) => token.end > token.start)
  } catch {
    // There are no tokens, so remove single characters.
    tokens = Array.from(source, (_, index) => ({ start: index, end: index + 1 }))
  }
  for (
    let length = Math.ceil(tokens.length / 2);
    length >= 1;
    length = length > 8 ? Math.floor(length / 2) : length - 1
  ) {
    for (let at = 0; at + length <= tokens.length; at++) {
      const first = tokens[at] as { start: number }
      const last = tokens[at + length - 1] as { end: number }
      yield source.slice(0, first.start) + source.slice(last.end)
    }
  }
  for (const token of tokens) {
    const text = source.slice(token.start, token.end)
    for (const simple of ['1', '""', '{}', '[]', '.a']) {
      if (text.length > simple.length) yield source.slice(0, token.start) + simple + source.slice(token.end)
    }
  }
}
