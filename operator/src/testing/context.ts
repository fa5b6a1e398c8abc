// The context of the operator in tests: the members that a test gives, and an error for every other one.

import type { OperatorContext } from '../context.ts'

/** Members may be parts of the real ones: a test gives what its subject reads. */
type GivenContext = { readonly [Member in keyof OperatorContext]?: unknown }

export function testContext(given: GivenContext): OperatorContext {
  const guarded = new Proxy(given, {
    get(target, member, receiver) {
      if (typeof member === 'string' && member !== 'then' && !(member in target))
        throw new TypeError(`The test gives no \`${member}\` in its context.`)
      return Reflect.get(target, member, receiver)
    },
  })
  return guarded as OperatorContext
}
