// The context of the operator in tests: the members that a test sets, and an error for all other members.

import type { OperatorContext } from '../context.ts'

/** Members may be partial: a test sets only the properties that its subject reads. */
type GivenContext = { readonly [Member in keyof OperatorContext]?: unknown }

export function testContext(given: GivenContext): OperatorContext {
  const guarded = new Proxy(given, {
    get(target, member, receiver) {
      if (typeof member === 'string' && member !== 'then' && !(member in target))
        throw new TypeError(`The test does not set \`${member}\` in its context.`)
      return Reflect.get(target, member, receiver)
    },
  })
  return guarded as OperatorContext
}
