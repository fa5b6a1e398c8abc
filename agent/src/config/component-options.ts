// Checks one component of a configuration: looks up its type, parses its options against the declaration, and runs every check that
// needs no other component. Pure.

import {
  type AnyDeclaration,
  type ComponentKind,
  type OptionProblem,
  type Registry,
  sinkEnvelope,
} from '../component.ts'
import { proxyProblems } from '../net/proxy.ts'
import type { ProxyOptions } from '../schema/groups.ts'
import { alternatives } from '../schema/messages.ts'
import { bool, either, group, type Options, objectSchema, optional, type Parsed } from '../schema/options.ts'
import { closest, type Problem } from '../schema/problems.ts'
import { parseOptions } from '../schema/validate.ts'
import { isTable, type Schema } from '../schema/walk.ts'
import type { ConfigGlobals } from './config.ts'
import { replacementOf } from './elsewhere.ts'
import { otherOption, valueAt } from './other-options.ts'
import { type Located, type ProblemFacts, problemAt } from './place.ts'
import type { Segments } from './syntax.ts'
import { checkValues } from './values.ts'

/** Minimum size of a disk buffer: two segments and the ledger. */
export const minDiskBuffer = 268_435_488

/** A component, which may be invalid: the declaration is undefined if the type is unknown, the options if they have errors. */
export interface Component {
  readonly id: string
  readonly kind: ComponentKind
  readonly located: Located
  readonly declaration: AnyDeclaration | undefined
  readonly options: Parsed<Options> | undefined
  readonly inputs: readonly string[] | undefined
  readonly given: Readonly<Record<string, unknown>>
}

const sourceEnvelope = {
  acknowledgements: optional(
    either(
      bool('Has no effect.'),
      group({ enabled: optional(bool('Has no effect.')) }, 'Has no effect.'),
      'Has no effect on a source: each sink decides whether sources wait for it.',
      { deprecated: 'Set `acknowledgements` on a sink, or set the global option.' },
    ),
  ),
}

interface Members {
  readonly members: Options
  readonly schema: Record<string, unknown>
}

const membersByDeclaration = new WeakMap<AnyDeclaration, Members>()

/** Options of a component, including those that its kind adds. Each declaration has one object, so its schema compiles only once. */
export function optionsOf(declaration: AnyDeclaration): Members {
  let known = membersByDeclaration.get(declaration)
  if (known === undefined) {
    const members =
      declaration.kind === 'sink'
        ? { ...declaration.options, ...sinkEnvelope }
        : declaration.kind === 'source'
          ? { ...sourceEnvelope, ...declaration.options }
          : declaration.options
    known = { members, schema: objectSchema(members) }
    membersByDeclaration.set(declaration, known)
  }
  return known
}

/** Data shared by the checks of all components in a configuration. */
export interface ComponentChecks {
  readonly registry: Registry
  readonly globals: ConfigGlobals
  /** Aliases of types that have already been reported. */
  readonly aliased: Set<string>
  readonly problems: Problem[]
}

/** Reads one component and adds its problems to `problems`. */
export function checkComponent(kind: ComponentKind, id: string, located: Located, checks: ComponentChecks): Component {
  const { globals, problems } = checks
  const broken = { id, kind, located, declaration: undefined, options: undefined, inputs: undefined, given: {} }
  if (!isTable(located.value)) {
    problems.push(problemAt(located, [], { message: `the ${kind} "${id}" must be a table of options` }))
    return broken
  }
  const { type, inputs: givenInputs, ...rest } = located.value
  // Keep `inputs` of a source, so that it is reported as an unknown option.
  const given = kind === 'source' && givenInputs !== undefined ? { ...rest, inputs: givenInputs } : rest
  const inputs = kind === 'source' ? [] : checkInputs(givenInputs, located, problems)
  const declaration = checkType(kind, type, located, checks)
  if (declaration === undefined) return { ...broken, inputs, given }
  const options = checkOptions(declaration, given, located, globals, problems)
  return { id, kind, located, declaration, options, inputs, given }
}

function checkInputs(inputs: unknown, located: Located, problems: Problem[]): readonly string[] | undefined {
  if (inputs === undefined || inputs === null) return []
  if (Array.isArray(inputs) && inputs.every((input) => typeof input === 'string')) return inputs
  problems.push(problemAt(located, ['inputs'], { message: '`inputs` must be a list of component ids' }))
  return undefined
}

function checkType(
  kind: ComponentKind,
  type: unknown,
  located: Located,
  { registry, aliased, problems }: ComponentChecks,
): AnyDeclaration | undefined {
  const known = registry.all.filter((component) => component.kind === kind)
  if (type === undefined || type === null) {
    problems.push(
      problemAt(located, [], { atKey: true, message: 'missing field `type`', help: `the type of the ${kind}` }),
    )
    return undefined
  }
  if (typeof type !== 'string') {
    problems.push(problemAt(located, ['type'], { message: '`type` must be a string' }))
    return undefined
  }
  const declaration = registry.find(kind, type)
  if (declaration === undefined) {
    const names = known.map((component) => component.type).toSorted()
    const elsewhere = registry.all.find(
      (component) => component.type === type || component.aliases?.includes(type) === true,
    )
    const near = closest(type, [...names, ...known.flatMap((component) => component.aliases ?? [])])
    const list = names.length === 0 ? `no ${kind} types exist` : `expected ${alternatives(names)}`
    problems.push(
      problemAt(located, ['type'], {
        message: `unknown ${kind} type \`${type}\`, ${list}`,
        help:
          elsewhere !== undefined
            ? `\`${type}\` is a ${elsewhere.kind}: move it to \`${elsewhere.kind}s\``
            : (replacementOf(kind, type) ?? (near === undefined ? undefined : `did you mean \`${near}\`?`)),
      }),
    )
    return undefined
  }
  if (declaration.deprecated !== undefined) {
    problems.push(
      problemAt(located, ['type'], {
        severity: 'warning',
        message: `the ${kind} type \`${declaration.type}\` is deprecated`,
        help: declaration.deprecated,
      }),
    )
  }
  if (declaration.type !== type && !aliased.has(type)) {
    aliased.add(type)
    problems.push(problemAt(located, ['type'], aliasFinding(declaration, type)))
  }
  return declaration
}

/** The finding about a type that was written as an alias. */
export function aliasFinding(
  declaration: Pick<AnyDeclaration, 'type' | 'aliasNotes'>,
  alias: string,
): ProblemFacts & { readonly message: string } {
  const read = `\`${alias}\` is read as \`${declaration.type}\``
  const note = declaration.aliasNotes?.[alias]
  if (note === undefined) return { severity: 'warning', informational: true, message: read }
  const help = `Rename the fields in programs and templates, and write \`type: ${declaration.type}\`; \`penstock convert\` does both.`
  return { severity: 'warning', message: `${read}: ${note}`, help }
}

function checkOptions(
  declaration: AnyDeclaration,
  given: Readonly<Record<string, unknown>>,
  located: Located,
  globals: ConfigGlobals,
  problems: Problem[],
): Parsed<Options> | undefined {
  const { members, schema } = optionsOf(declaration)
  const found: Problem[] = []
  if (declaration.kind === 'sink') {
    const findings = bufferFindings(given['buffer'], declaration.bufferSizeOptional === true)
    for (const finding of findings) found.push(problemAt(located, finding.segments, finding))
  }
  const checked = parseOptions(members, given)
  if (!checked.ok) {
    for (const problem of checked.problems) {
      const { segments, help } = problem
      const other = otherOption(declaration.kind, declaration.type, segments, valueAt(given, segments))
      found.push(problemAt(located, segments, { ...problem, help: other?.instead ?? help }))
    }
    problems.push(...found)
    return undefined
  }
  for (const finding of valueFindings(schema, checked.value, given)) {
    found.push(problemAt(located, finding.segments, finding))
  }
  // A component's own checks rely on valid options.
  if (!found.some(isError)) {
    for (const problem of declaration.check?.(checked.value, globals) ?? []) {
      found.push(problemAt(located, segmentsOf(problem.path, given), findingOf(problem)))
    }
  }
  problems.push(...found)
  return found.some(isError) ? undefined : checked.value
}

/** Problems of values that a schema cannot express, such as templates and addresses of proxies. */
export function valueFindings(
  schema: Schema,
  value: Readonly<Record<string, unknown>>,
  given: unknown,
): readonly LocatedFinding[] {
  const proxy = value['proxy'] as ProxyOptions | undefined
  const ofProxy = (proxy === undefined ? [] : proxyProblems(proxy)).map(({ path, message }) => {
    const segments = path.split('.')
    return { segments, message: `\`${segments.at(-1)}\` ${message}` }
  })
  return [...checkValues(schema, value, given), ...ofProxy]
}

function findingOf({ message, help, severity, position, rendered, diagnostic }: OptionProblem): ProblemFacts {
  return { message, help, severity, position, rendered, diagnostic }
}

/** Splits a path as components write it, `batch.max_bytes` or `endpoints[0]`; looks up keys that contain dots in the given options. */
export function segmentsOf(path: string, given: unknown): Segments {
  const segments: (string | number)[] = []
  let value = given
  let rest = path
  while (rest !== '') {
    const index = /^\[(\d+)\]\.?/.exec(rest)
    if (index !== null) {
      segments.push(Number(index[1]))
      value = Array.isArray(value) ? value[Number(index[1])] : undefined
      rest = rest.slice(index[0].length)
      continue
    }
    const keys = isTable(value) ? Object.keys(value).toSorted((left, right) => right.length - left.length) : []
    const known = keys.find((key) => rest === key || rest.startsWith(`${key}.`) || rest.startsWith(`${key}[`))
    const name = known ?? /^[^.[]*/.exec(rest)?.[0] ?? rest
    segments.push(name)
    value = isTable(value) ? value[name] : undefined
    rest = rest.slice(Math.max(name.length, 1)).replace(/^\./, '')
  }
  return segments
}

/** A finding with its place in the options. */
type LocatedFinding = ProblemFacts & { readonly segments: Segments }

/** Checks the limit of a buffer: `max_events` applies to memory buffers, `max_size` to disk buffers. */
export function bufferFindings(buffer: unknown, sizeOptional: boolean): readonly LocatedFinding[] {
  if (!isTable(buffer)) return []
  const disk = buffer['type'] === 'disk'
  if (!disk && buffer['type'] !== undefined && buffer['type'] !== 'memory') return []
  const findings: LocatedFinding[] = []
  const foreign = disk ? 'max_events' : 'max_size'
  const own = disk ? 'max_size' : 'max_events'
  if (buffer[foreign] !== undefined) {
    findings.push({
      segments: ['buffer', foreign],
      atKey: true,
      message: `unknown field \`${foreign}\`, expected one of \`${own}\`, \`type\`, \`when_full\``,
      help: `\`${foreign}\` applies only to \`type: ${disk ? 'memory' : 'disk'}\`; this buffer has \`type: ${disk ? 'disk' : 'memory'}\``,
    })
  }
  if (!disk) return findings
  const size = buffer['max_size']
  if (size === undefined || size === null) {
    if (sizeOptional) return findings
    findings.push({
      segments: ['buffer'],
      message: 'missing field `max_size`',
      help: `set the maximum size on disk in bytes, at least ${minDiskBuffer}`,
    })
  } else if (typeof size === 'number' && size < minDiskBuffer) {
    findings.push({
      segments: ['buffer', 'max_size'],
      message: `parameter 'max_buffer_size' was invalid: must be greater than or equal to ${minDiskBuffer} bytes`,
      help: `found ${size}`,
    })
  }
  return findings
}

export function isError(problem: Problem): boolean {
  return problem.severity === 'error'
}
