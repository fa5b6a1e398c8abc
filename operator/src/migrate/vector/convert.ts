// Converts a Vector configuration to a Pipeline. Components with a counterpart keep their options. A transform after
// `kubernetes_logs` gives events their old fields, so programs, templates, option paths and the delivered events stay the same.

import {
  compileCondition,
  findComponent,
  globPattern,
  isPattern,
  optionsOf,
  otherOptions,
  type Segments,
  textLiteral,
} from '@penstock/agent/config'
import { type AnyDeclaration, isTable } from '@penstock/agent/schema'
import { fixedOptions } from '../../compile/tenancy.ts'
import { missingPart } from '../absence.ts'
import { complete } from '../complete.ts'
import type { Table } from '../documents.ts'
import type { Component, Draft, Gap, Included, NamedText, Selector, Step } from '../draft.ts'
import { podFieldsIn } from '../inner.ts'
import {
  adjustCondition,
  adjustSink,
  adjustSource,
  isPassedOn,
  passOn,
  podFields,
  withNamedDefaults,
  withoutSelf,
} from './adjusted.ts'
import { checkedOptions } from './checked.ts'
import { conditionsIn } from './conditions.ts'
import { ends } from './ends.ts'
import { eventStep, withEvents } from './events.ts'
import { workOfAgents } from './itself.ts'
import { type Joining, joiningNote, joiningsOf, multilineOf } from './joining.ts'
import { withOwnSources } from './joining-copies.ts'
import { labelSteps } from './labels.ts'
import { LogSchema } from './log-schema.ts'
import { type MountReport, onNode } from './mounts.ts'
import { inOrder, type Old, oldsIn, outputsOf, ownerOf } from './old.ts'
import { type FailedProgram, programGaps } from './program-gaps.ts'
import { withPrograms } from './programs.ts'
import { type Root, readRoots, withScopes } from './read.ts'
import { refusals } from './refusals.ts'
import { services } from './services.ts'
import { settings } from './settings.ts'
import { listOf, merged, removeAt } from './tables.ts'
import { type Rewriting, rewritings } from './transforms.ts'
import { checkedOutputs, testsOf } from './unit-tests.ts'
import { unitsOf } from './units.ts'
import { ownSteps, Variables } from './variables.ts'

const kindOf = { sources: 'source', transforms: 'transform', sinks: 'sink' } as const

/** Reads the files of one configuration into a draft. Components of one file may read from those of another. */
export function convertVector(files: readonly NamedText[], included: Included, draft: Draft): void {
  const roots = files.flatMap((file, index) =>
    readRoots(file, draft.gaps).map((root) => ({ ...root, unit: `${index}.${root.unit}` })),
  )
  const programs = withPrograms(included, files)
  for (const unit of unitsOf(withScopes(roots))) new Conversion(unit, programs, draft, files).run()
  complete(draft, { file: (roots[0] ?? files[0])?.file ?? '', line: 1 }, ends)
}

/** The counterpart of a component. */
interface Counterpart {
  readonly declaration: AnyDeclaration
  readonly config: Record<string, unknown>
  /** Names of its further outputs. */
  readonly ports: readonly string[]
  /** Transforms before and after it. */
  readonly before: readonly Step[]
  readonly after: readonly Step[]
}

class Conversion {
  readonly #roots: readonly Root[]
  readonly #included: Included
  readonly #draft: Draft
  /** The settings of all files. */
  readonly #settings: Table
  #olds: readonly Old[]
  /** The replacement of each output of the old configuration, by `id` or `id.port`. */
  readonly #outputs = new Map<string, readonly string[]>()
  readonly #variables: Variables
  readonly #schema: LogSchema
  /** Transforms that join lines, whose work the sources do. */
  #joinings: readonly Joining[] = []
  /** Names (in the Pipeline) of components that provide metrics. */
  readonly #giveMetrics = new Set<string>()

  constructor(roots: readonly Root[], included: Included, draft: Draft, files: readonly NamedText[]) {
    const podFields = new Map(files.flatMap((file) => [...podFieldsIn(file)]))
    this.#roots = roots
    this.#variables = new Variables(draft.gaps, draft.namespace === undefined, podFields)
    this.#included = included
    this.#draft = draft
    this.#settings = Object.assign({}, ...roots.map(({ config }) => config))
    this.#schema = new LogSchema(this.#settings['log_schema'])
    this.#olds = roots.flatMap((root) =>
      (['sources', 'transforms', 'sinks'] as const).flatMap((kind) =>
        oldsIn(root, kind).map((old) => this.#variables.named(old)),
      ),
    )
  }

  run(): void {
    for (const root of this.#roots) this.#reportSettings(root)
    this.#draft.aggregator ??= this.#roots.find(({ aggregator }) => aggregator !== undefined)?.aggregator
    this.#olds = withOwnSources(this.#olds, (input) => this.#matching(input), this.#draft.gaps)
    const own = this.#ofAgentItself()
    const left = this.#olds.filter((old) => !own.has(old))
    this.#joinings = joiningsOf(left, (input) => this.#matching(input))
    for (const old of left.filter(({ kind }) => kind === 'sources')) this.#source(old)
    for (const old of inOrder(
      left.filter(({ kind }) => kind === 'transforms'),
      (input) => this.#matching(input),
    ))
      this.#transform(old)
    for (const old of left.filter(({ kind }) => kind === 'sinks')) this.#sink(old)
    for (const root of this.#roots) this.#tests(root)
  }

  // --- gaps ---

  #gap(root: Root, path: Segments, subject: string, reason: string, nearest: string, isReplaced = false): void {
    const gap: Gap = { file: root.file, line: root.lineOf(path), subject, reason, nearest }
    this.#draft.gaps.push(isReplaced ? { ...gap, isReplaced } : gap)
  }

  #reportSettings(root: Root): void {
    for (const name of Object.keys(root.config)) {
      if (['sources', 'transforms', 'sinks', 'tests'].includes(name)) continue
      const known = settings[name]
      if (name === 'secret' || isPassedOn(name) || (name === 'log_schema' && this.#schema.isDefault)) continue
      const value = root.config[name]
      if (name === 'schema' && isTable(value) && value['log_namespace'] === true) {
        const reason = 'the message and the metadata of a source are fields at the root of an event'
        const nearest =
          'Change programs that read the root as the message, or metadata such as `%kubernetes_logs.pod_name`.'
        this.#gap(root, [name], 'schema.log_namespace', reason, nearest)
        continue
      }
      if (known?.absence !== undefined && (!isTable(value) || Object.keys(value).length > 0)) {
        const refusal = { reason: known.absence, nearest: known.becomes }
        this.#draft.gaps.push(missingPart({ file: root.file, line: root.lineOf([name]) }, name, refusal, 'setting'))
        continue
      }
      const by = known?.by ?? 'the cluster provides it'
      if (known?.absence !== undefined) continue
      const other = otherOptions.find(({ kind, path }) => kind === 'global' && path === name)
      const isUnknown = known === undefined && other === undefined
      const own = isUnknown ? 'there is no such setting' : 'it is a global setting of the agent'
      const reason = known?.isReplaced === true ? by : own
      const nearest = known?.becomes ?? other?.instead ?? 'Remove it, or set it in the components that need it.'
      this.#gap(root, [name], name, reason, nearest, known?.isReplaced)
    }
  }

  // --- work that agents do themselves ---

  /** Removes sources of the agent's own metrics that only feed an exporter, because agents serve them at /metrics. */
  #ofAgentItself(): ReadonlySet<Old> {
    const { exporters, all } = workOfAgents(this.#olds, (input) => this.#matching(input))
    for (const { root, kind, id } of exporters) {
      const nearest = 'Let your Prometheus server scrape the agents.'
      this.#gap(root, [kind, id], id, 'agents serve their own metrics at /metrics', nearest, true)
    }
    return all
  }

  // --- inputs ---

  /** The old outputs that an input refers to: one, or all that match a pattern. */
  #matching(input: string): readonly string[] {
    const outputs = this.#olds.flatMap((old) => (old.kind === 'sinks' ? [] : outputsOf(old)))
    if (!isPattern(input)) return [input]
    const pattern = globPattern(input)
    return [...new Set([...outputs, ...this.#outputs.keys()])].filter((output) => pattern.test(output))
  }

  /** The replacements of a component's inputs. */
  #inputsOf(old: Old): string[] {
    const found: string[] = []
    for (const input of old.inputs) {
      const matching = this.#matching(input)
      const outputs = matching.flatMap((output) => this.#outputs.get(output) ?? [])
      const isRelaxed = isPattern(input) && this.#settings['wildcard_matching'] === 'relaxed'
      if (outputs.length === 0 && !isRelaxed && !matching.some((output) => this.#outputs.has(output))) {
        this.#gap(
          old.root,
          [old.kind, old.id, 'inputs'],
          `${old.id}: ${input}`,
          'no component has this output',
          'Correct `inputs`.',
        )
      }
      found.push(...outputs)
    }
    return [...new Set(found)]
  }

  // --- components ---

  #source(old: Old): void {
    const place = [old.kind, old.id, 'include'] as const
    const onMount = ({ reason, nearest }: MountReport) =>
      this.#gap(old.root, place, `${old.id}: include`, reason, nearest, true)
    const found = this.#known(onNode(withEvents(old), old.root.mounts ?? [], onMount))
    if (found === undefined) {
      const comments = [this.#comment(old, 'This source reads nothing.')]
      const config = { include: [`/var/empty/${old.id.replace(/[^\w-]/g, '-')}`] }
      this.#passOn(old, [this.#draft.add('sources', old.id, { type: 'file', config, comments })])
      return
    }
    const { declaration } = found
    const selector = this.#namespaceOf(old, declaration.type)
    const joining = this.#joinings.find(({ sources }) => sources.includes(old))
    const { config, multiline } = merged(
      { config: found.config },
      joining === undefined ? {} : multilineOf(old.type, joining.rules),
    ) as Pick<Component, 'config' | 'multiline'>
    const component = { type: declaration.type, ...(selector && { selector }), ...(multiline && { multiline }) }
    const name = this.#draft.add('sources', old.id, { ...component, ...(config && { config }) })
    if (declaration.kind === 'source' && declaration.outputs.includes('metric')) this.#giveMetrics.add(name)
    const steps: Step[] = old.type === 'kubernetes_events' ? [eventStep] : this.#ownFields(old, declaration)
    this.#outputs.set(
      old.id,
      this.#draft.append([name], [...steps, ...found.after], `${old.id}-fields`, this.#origin(old)),
    )
  }

  /** Gives events the names that they had in the old agent, where the counterpart of a source has another name. */
  #ownFields(old: Old, declaration: AnyDeclaration): Step[] {
    if (declaration.kind !== 'source' || old.type === declaration.type || !declaration.outputs.includes('log'))
      return []
    const type = `if .source_type == ${textLiteral(declaration.type)} { .source_type = ${textLiteral(old.type)} }`
    if (declaration.aliasNotes?.[old.type] === undefined) return [{ type: 'remap', text: type }]
    const comment = `The fields in the form of \`${old.type}\`. Without this transform, they are in \`.orchestrator\`.`
    return [{ type: 'remap', text: `${podFields(old.options)}\n${type}`, comments: [comment] }]
  }

  /** A VectorPipeline reads only the pods of its namespace. */
  #namespaceOf({ root, kind, id }: Old, type: string): Selector | undefined {
    const { resource } = root
    if (resource?.isConfined !== true || type !== 'orchestrator_logs' || this.#draft.namespace !== undefined)
      return undefined
    const { namespace } = resource
    if (namespace === undefined) {
      const reason = 'a VectorPipeline reads the pods of its namespace, but the file does not name one'
      this.#gap(root, [kind, id], id, reason, 'Set `selector.namespaces` of the source, or convert with `-n`.')
      return undefined
    }
    return { namespaces: { matchLabels: { 'kubernetes.io/metadata.name': namespace } } }
  }

  #transform(old: Old): void {
    const inputs = this.#inputsOf(old)
    if (inputs.length === 0) {
      this.#reportEmpty(old)
      this.#passOn(old, [])
      return
    }
    this.#transformed(old, inputs)
    if (old.type === 'metric_to_log' || !inputs.some((input) => this.#giveMetrics.has(ownerOf(input)))) return
    for (const [id, names] of this.#outputs)
      if (ownerOf(id) === old.id) for (const name of names) this.#giveMetrics.add(ownerOf(name))
  }

  #transformed(old: Old, inputs: readonly string[]): void {
    const joining = this.#joinings.find(({ reduce }) => reduce === old)
    if (joining !== undefined) {
      this.#gap(old.root, [old.kind, old.id], old.id, joiningNote.reason, joiningNote.nearest, true)
      this.#passOn(old, this.#draft.append(inputs, joining.steps, old.id, this.#origin(old)))
      return
    }
    const rewriting = rewritings.find(({ type }) => type === old.type)
    if (rewriting !== undefined) {
      this.#rewrite(old, inputs, rewriting)
      return
    }
    const found = this.#known(old)
    if (found === undefined) {
      const source = old.options['source'] ?? old.options['hooks']
      const comments = [
        this.#comment(old, 'Events pass unchanged.'),
        ...(source === undefined ? [] : ['Its program:', typeof source === 'string' ? source : JSON.stringify(source)]),
      ]
      if (old.options['reroute_dropped'] === true && this.#isRead(`${old.id}.dropped`)) {
        // Its readers stay in place for the corrected program.
        const name = this.#draft.add('transforms', old.id, {
          type: 'remap',
          inputs,
          config: { source: '.', drop_on_error: true, reroute_dropped: true },
          comments: [...comments, 'No event leaves the output `dropped`, because the replacement has no errors.'],
        })
        this.#passOn(old, [name])
        this.#outputs.set(`${old.id}.dropped`, [`${name}.dropped`])
        return
      }
      const step = { type: 'remap', text: '.', comments } as const
      this.#passOn(old, this.#draft.append(inputs, [step], old.id, this.#origin(old)))
      return
    }
    const { declaration, config } = found
    const taken = this.#takenBy(old, declaration, inputs)
    if (taken.length === 0) {
      this.#passOn(old, [])
      return
    }
    const text = config['source'] ?? config['condition']
    const program = typeof text === 'string' ? text : undefined
    const type = declaration.type
    if ((type === 'remap' || type === 'filter') && program !== undefined && Object.keys(config).length === 1) {
      this.#setOutputs(old, this.#draft.append(inputs, [{ type, text: program }], old.id, this.#origin(old))[0])
      return
    }
    const name = this.#draft.add('transforms', old.id, { type, inputs: taken, config, origin: this.#origin(old) })
    this.#setOutputs(
      old,
      this.#draft.append([name], found.after, `${old.id}-fields`, this.#origin(old))[0],
      found.ports,
    )
  }

  /** Reports a component that is left out because it receives nothing, with the component that causes this. */
  #reportEmpty(old: Old): void {
    const kind = kindOf[old.kind]
    const cause = this.#olds.find(
      ({ id }) => id !== old.id && old.inputs.some((input) => this.#outputs.has(input) && ownerOf(input) === id),
    )
    const [reason, nearest] =
      cause === undefined
        ? ['it receives nothing', `The ${kind} is left out. Correct \`inputs\`.`]
        : [
            `no event leaves \`${old.inputs.join('`, `')}\`, because of the gap at \`${cause.id}\` (line ${cause.root.lineOf([cause.kind, cause.id])})`,
            `The ${kind} is left out. Close that gap, and convert again.`,
          ]
    this.#gap(old.root, [old.kind, old.id], old.id, reason, nearest)
  }

  /** Maps all outputs of a component without a counterpart, so that components that read them still receive events. */
  #passOn({ id }: Old, names: readonly string[]): void {
    this.#outputs.set(id, names)
    for (const reader of this.#olds.flatMap(({ inputs }) => inputs)) {
      if (ownerOf(reader) !== id || reader === id) continue
      // Its program has no errors, so no event comes out where those with errors would.
      this.#outputs.set(reader, reader === `${id}.dropped` ? [] : names)
    }
  }

  #setOutputs({ id }: Old, name: string | undefined, ports: readonly string[] = []): void {
    this.#outputs.set(id, name === undefined ? [] : [name])
    for (const port of ports) this.#outputs.set(`${id}.${port}`, name === undefined ? [] : [`${name}.${port}`])
  }

  #rewrite(old: Old, inputs: readonly string[], rewriting: Rewriting): void {
    for (const option of Object.keys(old.options)) {
      if (rewriting.options.includes(option)) continue
      const reason = `the option has no counterpart if \`${old.type}\` becomes ${rewriting.becomes}`
      this.#gap(old.root, [old.kind, old.id, option], `${old.id}: ${option}`, reason, 'Remove it.')
    }
    if (rewriting.note !== undefined)
      this.#gap(old.root, [old.kind, old.id], old.id, rewriting.note, 'The share of the events stays the same.', true)
    const rewritten = rewriting.rewrite(this.#variables.inTransform(old))
    if (rewritten === undefined) {
      this.#gap(
        old.root,
        [old.kind, old.id],
        old.id,
        `the options of \`${old.type}\` are not valid`,
        `Rewrite it as ${rewriting.becomes}.`,
      )
      const step = { type: 'remap', text: '.', comments: [this.#comment(old, 'Events pass unchanged.')] } as const
      this.#passOn(old, this.#draft.append(inputs, [step], old.id, this.#origin(old)))
      return
    }
    const isReported = this.#reportConditions(old)
    for (const { name, steps } of rewritten.outputs) {
      const id = name === '' ? old.id : `${old.id}.${name}`
      if (name !== '' && !this.#isRead(id)) continue
      const own = steps.map((step) => ({
        ...step,
        isReported,
        text: this.#variables.program(old, step.type, step.text),
      }))
      this.#outputs.set(id, this.#draft.append(inputs, own, id, this.#origin(old)))
    }
  }

  /** Reports conditions that do not compile. Returns whether there are any. */
  #reportConditions(old: Old): boolean {
    const failed = conditionsIn(this.#variables.inTransform(old)).flatMap(({ segments, text: marked }) => {
      const text = this.#variables.program(old, 'filter', marked)
      const compiled = compileCondition(text)
      return compiled.ok ? [] : [{ segments, text, compiled }]
    })
    for (const { segments, text, compiled } of failed) this.#failed(old, segments, text, compiled)
    return failed.length > 0
  }

  #isRead(output: string): boolean {
    const isChecked = this.#roots.some(({ config }) => checkedOutputs(config['tests']).includes(output))
    const reads = (input: string) => input === output || (isPattern(input) && globPattern(input).test(output))
    return isChecked || this.#olds.some(({ inputs }) => inputs.some(reads))
  }

  #sink(old: Old): void {
    const inputs = this.#inputsOf(old)
    if (inputs.length === 0) {
      this.#reportEmpty(old)
      return
    }
    const service = this.#ofService(old)
    const found = service === undefined ? undefined : this.#known(service.old)
    const taken = found === undefined ? [] : this.#takenBy(old, found.declaration, inputs)
    if (service === undefined || found === undefined || taken.length === 0) {
      const comments = [this.#comment(old, 'This sink discards its events.')]
      this.#draft.add('sinks', old.id, { type: 'blackhole', inputs, comments })
      return
    }
    const steps = [...service.steps, ...found.before]
    const heads = this.#draft.append(taken, steps, `${old.id}-form`, this.#origin(old))
    this.#draft.add('sinks', old.id, { type: found.declaration.type, inputs: heads, config: found.config })
  }

  /**
   * Converts a sink for a product to the sink `http` and the steps before it; other sinks stay unchanged. Reports options that `http` cannot
   * express, and returns undefined.
   */
  #ofService(old: Old): { readonly old: Old; readonly steps: readonly Step[] } | undefined {
    const service = services.find(({ type }) => type === old.type)
    const shared = /^splunk/.test(old.type) ? this.#schema.ofEnvelope() : {}
    if (service === undefined || service.isHere?.(old.options) === false) return { old, steps: [] }
    const rewritten = service.rewrite({ ...shared, ...old.options })
    if ('refused' in rewritten) {
      const { refused } = rewritten
      const reason = Object.hasOwn(old.options, refused)
        ? `its value has no counterpart if \`${old.type}\` becomes the sink \`http\``
        : 'the option is missing'
      const nearest = `Write ${service.becomes}, and matching options.`
      this.#gap(old.root, [old.kind, old.id, refused], `${old.id}: ${refused}`, reason, nearest)
      return undefined
    }
    // Variables in the options of the sink and in its programs have different forms.
    const marked = this.#variables.inTransform(old)
    const again = service.rewrite({ ...shared, ...marked })
    const steps = ('refused' in again ? [] : again.steps).map((step) => ({
      ...step,
      text: this.#variables.program(old, step.type, step.text),
    }))
    return { old: { ...old, type: 'http', options: rewritten.config }, steps }
  }

  /** The inputs whose events the component accepts. The placeholder for a source of metrics emits logs. */
  #takenBy(old: Old, declaration: AnyDeclaration, inputs: readonly string[]): readonly string[] {
    if (declaration.kind === 'source' || declaration.accepts.includes('log')) return inputs
    const taken = inputs.filter((input) => this.#giveMetrics.has(ownerOf(input)))
    if (taken.length < inputs.length) {
      const reason = `the ${kindOf[old.kind]} accepts only metrics, and some of its inputs provide none here`
      this.#gap(old.root, [old.kind, old.id, 'inputs'], `${old.id}: inputs`, reason, 'These inputs are removed.')
    }
    return taken
  }

  #origin({ root, kind, id }: Old) {
    return { file: root.file, line: root.lineOf([kind, id]), subject: id }
  }

  #comment({ root, kind, id, type }: Old, effect: string): string {
    const line = root.lineOf([kind, id])
    const why =
      findComponent(kindOf[kind], type) === undefined ? 'has no counterpart' : 'is not valid, as the report says'
    return `GAP: ${kindOf[kind]} \`${id}\` of type \`${type}\` (${root.file}:${line}) ${why}. ${effect}`
  }

  // --- options ---

  /** The counterpart with its valid options. Reports a gap and returns undefined if there is none. */
  #known(old: Old): Counterpart | undefined {
    const declaration = findComponent(kindOf[old.kind], old.type)
    if (declaration === undefined) {
      const refusal = refusals[old.kind].find(({ name }) => name === old.type)
      const line = old.root.lineOf([old.kind, old.id, 'type'])
      const subject = `${old.id}: ${old.type}`
      this.#draft.gaps.push(missingPart({ file: old.root.file, line }, subject, refusal, `${kindOf[old.kind]} type`))
      return undefined
    }
    const given = old.kind === 'sources' ? withoutSelf(old) : old
    const isTransform = declaration.kind === 'transform'
    const reads = new Set<string>()
    const config = isTransform
      ? this.#variables.inTransform(given)
      : this.#variables.inOptions(given, optionsOf(declaration).schema, (name) => reads.add(name))
    const note = (path: readonly string[], reason: string, nearest: string, isReplaced: boolean): void =>
      this.#gap(old.root, [old.kind, old.id, ...path], `${old.id}: ${path.join('.')}`, reason, nearest, isReplaced)
    if (declaration.kind === 'source') adjustSource(config, note)
    if (declaration.kind === 'sink') adjustSink(old.type, config, note)
    const labels = old.type === 'loki' ? labelSteps(config) : []
    adjustCondition(config)
    passOn(this.#settings, this.#olds, declaration, config)
    this.#inlineProgram(old, config)
    if (isTransform) Object.assign(config, this.#variables.inPrograms(old, config))
    // The last line of a text in TOML often contains the spaces before its quotes.
    if (typeof config['source'] === 'string') config['source'] = config['source'].replace(/\n[\t ]+$/, '\n')
    const before = old.kind === 'sinks' ? this.#schema.beforeSink(declaration.type, config) : []
    const ports = checkedOptions(declaration, config, {
      option: (segments, name, ...row) =>
        this.#gap(old.root, [old.kind, old.id, ...segments], name === '' ? old.id : `${old.id}: ${name}`, ...row),
      program: (segments, text, problem) => this.#failed(old, segments, text, problem),
    })
    if (ports === undefined) return undefined
    for (const { path } of fixedOptions(
      declaration.kind,
      declaration.type,
      config,
      this.#draft.namespace !== undefined,
    )) {
      removeAt(config, path)
      note(path.map(String), 'it applies to the whole agent, which several Pipelines share', 'It is left out.', true)
    }
    const named = withNamedDefaults(declaration.kind, declaration.type, config)
    const after = this.#schema.after(declaration, config, (option, reason, nearest) =>
      note([option], reason, nearest, false),
    )
    return { declaration, config: named, ports, before: [...ownSteps([...reads]), ...before, ...labels], after }
  }

  /** Copies a program from its files into the Pipeline. */
  #inlineProgram(old: Old, config: Record<string, unknown>): void {
    const name = ['file', 'files'].find((each) => config[each] !== undefined)
    if (old.kind !== 'transforms' || name === undefined) return
    const texts = listOf(config[name]).map((path) => {
      const [found] = this.#included(String(path), old.root.file)
      if (found !== undefined) return this.#variables.inText(old, found.text)
      const nearest = 'Put the file next to the configuration, and convert again.'
      const place = [old.kind, old.id, name]
      this.#gap(old.root, place, `${old.id}: ${String(path)}`, 'the file of the program is missing', nearest)
      return undefined
    })
    config['source'] = texts.includes(undefined) ? '.' : texts.join('\n')
    delete config[name]
  }

  /** Reports a program that does not compile. */
  #failed(old: Old, segments: Segments, text: string, problem: FailedProgram): void {
    this.#draft.gaps.push(...programGaps(old, segments, text, problem, this.#included))
  }

  #tests(root: Root): void {
    const places = {
      at: (id: unknown) => this.#outputs.get(String(id))?.[0],
      entries: (id: unknown) =>
        this.#olds.flatMap((old) =>
          old.kind === 'transforms' && old.id === id ? this.#draft.entriesOf(this.#origin(old)) : [],
        ),
      line: (text: string) => this.#schema.line(text),
    }
    const nearest = 'Rewrite it as a unit test of the Pipeline.'
    const leave = (index: number, name: string, reason: string) =>
      this.#gap(root, ['tests', index], `test ${name}`, reason, nearest)
    for (const test of testsOf(root.config['tests'], places, leave)) this.#draft.addTest(test)
  }
}
