// Makes an example of a component that the loader accepts: its required options, and those that its own check requires.

import type { AnyDeclaration } from '../component.ts'
import { exampleOf, skeleton } from '../schema/skeleton.ts'
import { parseOptions } from '../schema/validate.ts'
import { optionsOf } from './component-options.ts'
import { globalOptions, globalsOf } from './globals.ts'

export function exampleOptions(declaration: AnyDeclaration): Record<string, unknown> {
  const { members } = optionsOf(declaration)
  const options = skeleton(members)
  // Each pass adds one missing option, so there are at most as many passes as options.
  for (const _ of Object.keys(members)) {
    const checked = parseOptions(members, options)
    if (!checked.ok) return options
    const missing = (declaration.check?.(checked.value, defaultGlobals()) ?? [])
      .filter((problem) => problem.severity !== 'warning')
      // The option at the problem's path, or else the first option that the message names.
      .flatMap(({ path, message, help = '' }) => [
        path.split(/[.[]/)[0] ?? '',
        ...(`${message} ${help}`.match(/(?<=`)\w+(?=`)/g) ?? []),
      ])
      .find((name) => Object.hasOwn(members, name) && options[name] === undefined)
    if (missing === undefined) return options
    options[missing] = exampleOf(members[missing] as Readonly<Record<string, unknown>>)
  }
  return options
}

function defaultGlobals() {
  const defaults = parseOptions(globalOptions, {})
  if (!defaults.ok) throw new Error('The defaults of the global settings do not match their schema.')
  return globalsOf(defaults.value, {})
}
