// Functions on the type of a value: a test (`is_string`) and a guard (`string`) for each type.

import type { Value } from '../event/value.ts'
import { defineFunction, type FunctionDeclaration, failure, type Result } from './function.ts'
import { isOfKind, type Kind, kinds } from './kind.ts'
import { textOfKind } from './text.ts'

/** A function that returns whether a value has a type. */
export function typeTest(name: string, what: string, kind: Kind, example: string): FunctionDeclaration {
  return defineFunction({
    name,
    category: 'Type',
    summary: `Returns whether a value is ${what}.`,
    parameters: [{ name: 'value', kind: kinds.any, bytes: true, description: 'The value.' }],
    returns: kinds.boolean,
    fallible: 'never',
    pure: true,
    looksAtTypeOnly: true,
    examples: [
      { source: `${name}(${example})`, result: 'true' },
      { source: `${name}(${example === '"x"' ? '1' : '"x"'})`, result: 'false' },
      { source: `${name}(.absent)`, result: String(name === 'is_null') },
    ],
    compile: () => (value: Value) => isOfKind(value, kind),
  })
}

/** A function that returns values of one type unchanged and fails for all others. */
export function typeGuard(
  name: string,
  what: string,
  kind: Kind,
  example: string,
  result: string,
): FunctionDeclaration {
  const test = guard(name, kind)
  const other = name === 'string' ? '1' : '"x"'
  return defineFunction({
    name,
    category: 'Type',
    summary: `Returns ${what} unchanged, and fails for a value of another type.`,
    description: 'It does not convert the value. Use it to make the type of a field known to the compiler.',
    parameters: [{ name: 'value', kind: kinds.any, bytes: true, description: 'The value.' }],
    returns: (call) => {
      const known = call.kind('value').and(kind)
      return known.isNever ? kind : known
    },
    fallible: (call) => !call.kind('value').within(kind),
    errors: ['The value has another type.'],
    pure: true,
    looksAtTypeOnly: true,
    examples: [
      { source: `${name}!(${example})`, result },
      { source: `${name}(${other}) ?? "another type"`, result: '"another type"' },
      { source: `_, err = ${name}(${other})\nerr != null`, result: 'true' },
    ],
    compile: () => test,
  })
}

// The common kinds, tested without kind tables.
function guard(name: string, kind: Kind): (value: Value) => Result {
  if (name === 'string') {
    return (value) =>
      typeof value === 'string' || isOfKind(value, kind) ? value : failure(`expected string, got ${textOfKind(value)}`)
  }
  const expected = kind.toString()
  return (value) => (isOfKind(value, kind) ? value : failure(`expected ${expected}, got ${textOfKind(value)}`))
}
