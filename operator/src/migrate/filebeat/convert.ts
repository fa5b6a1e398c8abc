// Converts a Filebeat configuration to a Pipeline: inputs, the inputs that autodiscovery would start, global processors, and the output.

import { minDiskBuffer, textLiteral } from '@penstock/agent/config'
import { complete, completeSource, type Ends } from '../complete.ts'
import { type Component, type Draft, type Included, type NamedText, nameLike, type Step } from '../draft.ts'
import { flagIn, option, Report, textIn } from '../loki/context.ts'
import { below, flagOf, isList, isMap, itemsOf, type Tree, textOf, textsOf } from '../loki/tree.ts'
import type { Refusal } from '../page.ts'
import { soundComponent } from '../sound.ts'
import { argumentsIn } from './arguments.ts'
import { type Choices, inputChoices, noteMetadata } from './choices.ts'
import { assigned, conditionOf, fieldOf } from './conditions.ts'
import { hintSteps, readHints, unreadHints } from './hints.ts'
import { type Find, finderOf, isEnabled, readsSomething } from './includes.ts'
import { inputs, ownFields, refusedInputs } from './inputs.ts'
import { addKubernetes, podMetadata } from './kubernetes.ts'
import { bytesOf, notBytes } from './lines.ts'
import { reportTables } from './lists.ts'
import { mountsIn, withMounted } from './mounts.ts'
import { outputs, refusedOutputs } from './outputs.ts'
import { machineFieldsIn } from './own-fields.ts'
import { neededIn } from './pod-values.ts'
import { stepsOf, whenever } from './processors.ts'
import {
  authoritiesIn,
  cloudAddress,
  cloudVariable,
  configsOf,
  ofProcess,
  partOf,
  referringIn,
  settings,
} from './read.ts'
import { nodeName, withDefaults } from './variables.ts'

const ofDestination = new Set(['setup'])
/** The report of a setting that has no effect. */
const unknownSetting = ['Filebeat has no such setting, and ignores it', 'Look for a mistake in its name.'] as const
const ofTemplates: ReadonlySet<string> = new Set(['condition', 'config'])
/** The option that parts without a counterpart have, too. */
const switched = { options: { enabled: '' } } as const

/** Parts other than inputs, processors and outputs. */
export const refusedParts: readonly Refusal[] = [
  {
    name: 'modules',
    reason: '`convert` does not convert pipelines of modules',
    nearest: 'Parse the lines in a remap transform, such as with `parse_nginx_log` or `parse_apache_log`.',
  },
  {
    name: 'config',
    reason: 'the files with inputs or modules are neither given nor beside the configuration',
    nearest: 'Pass the folder that contains them: `penstock convert -f FOLDER`.',
  },
  {
    name: 'autodiscover',
    reason: 'Penstock discovers pods in Kubernetes only',
    nearest: 'Set the paths in a `file` source.',
  },
]

export function convertFilebeat(files: readonly NamedText[], included: Included, draft: Draft): void {
  const report = new Report(draft.gaps, draft.namespace === undefined)
  const mounts = files.flatMap(mountsIn)
  const started = argumentsIn(files)
  const referring = referringIn(files)
  const configs = files
    .flatMap((file) => configsOf(file, draft.gaps, started, referring))
    .map((config) => withMounted(config, mounts, draft.secrets))
  const [first] = configs
  if (first === undefined) {
    const file = files[0]?.file ?? ''
    report.gap(
      { file, line: 1 },
      file,
      'the file has no `filebeat` or `output`',
      'Pass the file that has them, or set `--from` to the agent that the file configures.',
    )
  }
  for (const [name, key] of files.flatMap((file) => [...authoritiesIn(file)]))
    if (!draft.secrets.has(name)) draft.secrets.set(name, key)
  const find = finderOf(files, included)
  if (configs.length > 1)
    for (const { name, value } of started) {
      const reason = 'several configurations are given, and all of them get the setting of this argument'
      report.gap(value, `-E ${name}`, reason, 'Convert each configuration with its own workload.')
    }
  for (const config of configs) new Conversion(draft, report, config, find).run()
  complete(draft, { file: files[0]?.file ?? '', line: first?.line ?? 1 }, ends)
}

class Conversion {
  readonly #draft: Draft
  readonly #report: Report
  readonly #config: Tree
  readonly #find: Find
  readonly #heads: string[] = []
  #buffer: object | undefined
  readonly #choices: Choices = {
    index: false,
    id: false,
    ownTime: false,
    hasSource: false,
    namesRuntime: false,
    shared: () => [],
    pipeline: false,
    metadata: new Set(),
  }

  constructor(draft: Draft, report: Report, config: Tree, find: Find) {
    this.#draft = draft
    this.#report = report
    this.#config = config
    this.#find = find
  }

  run(): void {
    const filebeat = below(this.#config, 'filebeat')
    reportTables(this.#config, this.#report)
    this.#choices.hasSource = readsSource(this.#config)
    this.#choices.namesRuntime = namesRuntime(this.#config)
    const alias = aliasOf(below(this.#config, 'setup', 'ilm'))
    if (alias !== undefined) this.#choices.alias = alias
    this.#choices.shared = (mayHaveTags) =>
      ownFields(
        below(this.#config, 'fields'),
        flagOf(below(this.#config, 'fields_under_root')) === true,
        below(this.#config, 'tags'),
        this.#report,
        mayHaveTags,
      )
    for (const input of [...itemsOf(below(filebeat, 'inputs')), ...itemsOf(below(filebeat, 'prospectors'))])
      this.#input(input, [])
    for (const provider of itemsOf(below(filebeat, 'autodiscover', 'providers'))) this.#provider(provider)
    for (const module of itemsOf(below(filebeat, 'modules'))) if (readsSomething(module)) this.#module(module)
    for (const name of ['inputs', 'prospectors', 'modules']) this.#included(below(filebeat, 'config', name))
    this.#settings(filebeat)
    const global = [...this.#machine(), ...this.#processing(below(this.#config, 'processors'))]
    const place = below(this.#config, 'processors') ?? this.#config
    const origin = { file: place.file, line: place.line, subject: 'processors' }
    if (this.#heads.length === 0 && this.#draft.count('sources') === 0) {
      completeSource(this.#draft, this.#config, ends.source)
      this.#heads.push('nothing')
    }
    const heads = this.#heads.length === 0 ? [] : this.#draft.append(this.#heads, global, 'processors', origin)
    this.#output(heads)
  }

  #processing(list: Tree | undefined): readonly Step[] {
    return this.#noted(itemsOf(list).flatMap((item) => [...stepsOf(item, this.#report, partOf)]))
  }

  /** Sets the fields with the name of the machine that later parts read. Filebeat sets them after the processors of inputs. */
  #machine(): readonly Step[] {
    const readers = [below(this.#config, 'processors'), below(this.#config, 'output')]
    const names = [...new Set(readers.flatMap(machineFieldsIn))]
    if (names.length === 0) return []
    const given = below(this.#config, 'name')
    const value =
      given === undefined ? nodeName(this.#report.readsEnvironment) : assigned(given, 'name', this.#report, true)
    if (given === undefined) {
      const reason = 'Filebeat writes the name of its machine; events get that of their node'
      this.#report.replaced(this.#config, names.join(', '), reason, 'Set another name in a remap transform.')
    }
    return [{ type: 'remap', text: names.map((name) => `${fieldOf(name)} = ${value}`).join('\n') }]
  }

  /** Notes fields that outputs must know of. */
  #noted(steps: readonly Step[]): readonly Step[] {
    if (steps.some(({ text }) => text.includes('%metadata._id = '))) this.#choices.id = true
    noteMetadata(steps, this.#choices.metadata)
    if (steps.some(({ text }) => text.includes('.log_timestamp'))) this.#choices.ownTime = true
    return steps
  }

  /** @param before steps that run before the processors of the input */
  #input(tree: Tree, before: readonly Step[], rename?: string): void {
    const type = textOf(below(tree, 'type')) ?? textOf(below(tree, 'input_type')) ?? 'log'
    const mapping = inputs.find((each) => each.name === type)
    const part = withDefaults({ ...partOf(type, tree), name: type }, mapping ?? switched, this.#report)
    if (flagIn(part, 'enabled') === false) return
    const name = rename ?? textIn(part, 'id') ?? `${type}-input`
    const origin = { file: part.file, line: part.line, subject: `input ${type}` }
    if (mapping === undefined) {
      this.#report.refused(part, 'input', refusedInputs)
      const comments = [
        `GAP: the input \`${type}\` (${part.file}:${part.line}) has no counterpart. This source reads nothing.`,
      ]
      this.#heads.push(
        this.#draft.add('sources', name, {
          type: 'file',
          config: { include: [`/var/empty/${nameLike(type)}`] },
          comments,
        }),
      )
      return
    }
    this.#report.options(part, mapping)
    const { component, steps } = mapping.build(part, this.#report, this.#choices)
    const source = this.#draft.add('sources', name, soundComponent('source', component, origin, this.#draft.gaps))
    const all = [...this.#noted([...steps, ...before]), ...this.#processing(option(part, 'processors'))]
    this.#heads.push(...this.#draft.append([source], all, `${name}-event`, origin))
  }

  /** A provider of autodiscovery: all pods, or those that match its templates. */
  #provider(tree: Tree): void {
    const part = partOf('autodiscover', tree)
    const type = textIn(part, 'type')
    if (type !== 'kubernetes') {
      this.#refused(tree, `autodiscover ${type ?? ''}`, 'autodiscover')
      return
    }
    const metadata = providerSteps(tree, this.#report)
    const appended = itemsOf(below(tree, 'appenders')).flatMap((appender) => this.#appended(appender))
    const templates = itemsOf(below(tree, 'templates')).map((template) => {
      const given = below(template, 'condition')
      const others = isMap(template) ? [...template.value].filter(([name]) => !ofTemplates.has(name)) : []
      for (const [name, item] of others) this.#report.replaced(item, `templates.${name}`, ...unknownSetting)
      return { template, given, condition: conditionOf(given, this.#report) }
    })
    const hints = below(tree, 'hints')
    const isRead = templates.some(({ given }) => given === undefined)
    if (flagOf(below(hints, 'enabled')) === true && hints !== undefined && !isRead) {
      // Hints apply to pods that no template reads.
      const others = templates.flatMap(({ condition }) => condition ?? [])
      const rest = others.map((condition) => filter(`!(${condition})`))
      this.#hints(tree, hints, [...chosenSteps(tree, metadata, rest), ...appended])
    }
    for (const [index, { template, given, condition }] of templates.entries()) {
      const name = `template-${index + 1}`
      const choice = given === undefined ? [] : [condition === undefined ? unselected(given) : filter(condition)]
      const before = [...chosenSteps(tree, metadata, choice), ...appended]
      for (const config of itemsOf(below(template, 'config'))) {
        const isModule = below(config, 'module') !== undefined
        if (isModule) this.#module(config, true)
        const needed = isModule ? [] : neededIn(config).map(filter)
        this.#input(isModule ? containers(config) : config, [...needed, ...before], name)
      }
    }
  }

  /** The steps that an appender adds to the inputs of pods that meet its condition. */
  #appended(tree: Tree): readonly Step[] {
    const known = (names: readonly string[]) => ({ options: Object.fromEntries(names.map((name) => [name, ''])) })
    const config = below(tree, 'config')
    this.#report.options({ name: 'appender', ...tree, tree }, known(['type', 'condition', 'config']))
    const part = partOf('appender', config ?? { ...tree, value: null })
    this.#report.options(part, known(['fields', 'fields_under_root', 'tags', 'processors', 'index', 'pipeline']))
    const isAtRoot = flagOf(below(config, 'fields_under_root')) === true
    const steps = [
      ...inputChoices(part, this.#choices, this.#report),
      ...ownFields(below(config, 'fields'), isAtRoot, below(config, 'tags'), this.#report),
      ...this.#processing(below(config, 'processors')),
    ]
    const given = below(tree, 'condition')
    const test = given === undefined ? 'true' : conditionOf(given, this.#report)
    if (test === undefined || steps.length === 0) return []
    return test === 'true' ? steps : [whenever(test, steps)]
  }

  /** The input that hints start for pods. */
  #hints(tree: Tree, hints: Tree, metadata: readonly Step[]): void {
    const byDefault = below(hints, 'default_config')
    const prefix = textOf(below(tree, 'prefix')) ?? 'co.elastic'
    const choice = chosenByPods(prefix, flagOf(below(byDefault, 'enabled')) !== false)
    this.#report.options(partOf('hints', hints), {
      options: { enabled: '', ...Object.fromEntries(defaultsIn(hints).map((name) => [name, ''])) },
    })
    this.#report.replaced(
      hints,
      'hints',
      `of the pod annotations \`${prefix}.logs/…\`, only ${readHints} are read; ${unreadHints} have no effect`,
      'For pods with such annotations, add a source with a `selector`, and set `multiline` there, or parse the lines in a remap transform.',
    )
    const isInput = isMap(byDefault) && byDefault.value.has('type')
    const config = isInput ? { ...byDefault, value: without(byDefault.value, 'enabled') } : containers(tree)
    const isStream = textOf(below(config, 'type')) === 'filestream'
    const needed = neededIn(config).map(filter)
    this.#input(config, [choice, ...needed, ...hintSteps(prefix, isStream), ...metadata], 'pods')
  }

  /** Inputs and modules in other files. */
  #included(tree: Tree | undefined): void {
    const path = textOf(below(tree, 'path'))
    if (tree === undefined || path === undefined || flagOf(below(tree, 'enabled')) === false) return
    const items = this.#find(path, this.#config.file, this.#draft.gaps)
    const isOfModules = /modules/.test(path)
    const own = items.filter((item) => (below(item, 'module') !== undefined) === isOfModules)
    if (own.length === 0) this.#notFound(tree, path)
    for (const item of own) {
      reportTables(item, this.#report)
      if (below(item, 'module') === undefined) this.#input(item, [])
      else if (readsSomething(item)) this.#module(item)
    }
  }

  /** Reports that no file is at a path. A new installation has no file of a module that reads something. */
  #notFound(tree: Tree, path: string): void {
    if (!/modules\.d\/\*/.test(path)) this.#refused(tree, 'filebeat.config', 'config')
    else {
      const reason = 'no module is enabled unless a file in this folder enables it, and none is given'
      this.#report.replaced(tree, 'filebeat.config.modules', reason, 'If you enabled modules, pass the folder, too.')
    }
  }

  /** @param isRead whether a source reads the lines of the module, as for a template of autodiscovery */
  #module(tree: Tree, isRead = false): void {
    const subject = `module ${textOf(below(tree, 'module')) ?? ''}`
    if (isRead) this.#refused(tree, subject, 'modules')
    else this.#report.missing(tree, subject, unreadModule(tree), 'part')
  }

  #refused(tree: Tree, subject: string, name: string): void {
    const refusal = refusedParts.find((each) => each.name === name)
    this.#report.missing(tree, subject, refusal, 'part')
  }

  #settings(filebeat: Tree | undefined): void {
    for (const [name, item] of isMap(filebeat) ? filebeat.value : []) {
      if (!settings.has(name)) this.#report.replaced(item, `filebeat.${name}`, ...unknownSetting)
    }
    for (const [name, item] of isMap(this.#config) ? this.#config.value : []) {
      if (['filebeat', 'output', 'processors', 'fields', 'fields_under_root', 'tags'].includes(name)) continue
      if (name === 'queue' && isMap(below(item, 'disk'))) this.#queue(below(item, 'disk'))
      else if (ofProcess.has(name))
        this.#report.replaced(item, name, 'it configures the program itself', 'The agent has its own settings.')
      else if (name === 'cloud') this.#cloud(item)
      else if (ofDestination.has(name)) {
        this.#report.replaced(
          item,
          name,
          'the agent does not set up templates, life cycles or dashboards at the destination',
          'Existing ones stay unchanged.',
        )
      } else this.#report.replaced(item, name, ...unknownSetting)
    }
  }

  /** A queue on disk becomes the buffer of the sink. */
  #queue(disk: Tree | undefined): void {
    if (disk === undefined) return
    const given = textOf(below(disk, 'max_size'))
    const size = bytesOf(given)
    if (size === undefined) {
      this.#report.gap(disk, 'queue.disk.max_size', notBytes(given), 'Set `buffer` of the sink.')
      return
    }
    this.#buffer = { type: 'disk', max_size: Math.max(size, minDiskBuffer), when_full: 'block' }
    const reason = 'the queue on disk becomes the buffer of each sink'
    this.#report.replaced(
      disk,
      'queue.disk',
      reason,
      'The volume of the agent must have room for `max_size` of each sink.',
    )
  }

  /** `cloud.id` has become the address of the output, unless it is in a variable. */
  #cloud(item: Tree): void {
    const id = textOf(below(item, 'id'))
    if (id === undefined || cloudAddress(id) !== undefined) return
    const nearest = 'Then set `endpoints` and `auth` of the sink for this deployment.'
    const hosts = below(this.#config, 'output', 'elasticsearch', 'hosts')
    if (textsOf(hosts)[0] === cloudVariable(id)) this.#cloudVariables(item, id)
    else if (!id.includes('${'))
      this.#report.gap(item, 'cloud.id', 'it contains no address', 'Correct it, and convert again.')
    else {
      const reason = 'if the variable has a value, Filebeat sends to this deployment in place of `hosts`'
      this.#report.replaced(item, 'cloud.id', reason, nearest)
    }
  }

  /** Reports the keys of the Secret with the address and the credentials of a deployment whose id is in a variable. */
  #cloudVariables(item: Tree, id: string): void {
    const name = (text: string) => `\`${text.slice(2, -1)}`
    const reason = 'the sink needs an address, not the id of a deployment'
    const nearest = `Put the address, such as \`https://ID.REGION.CLOUD.es.io:443\`, into ${name(id)}_ADDRESS\` of the Secret.`
    this.#report.replaced(item, 'cloud.id', reason, nearest)
    const auth = textOf(below(item, 'auth')) ?? ''
    if (!/^\$\{\w+\}$/.test(auth)) return
    const parts = `Put the parts into ${name(auth)}_USER\` and ${name(auth)}_PASSWORD\` of the Secret.`
    this.#report.replaced(item, 'cloud.auth', 'the sink has two options for the user and the password', parts)
  }

  #output(heads: readonly string[]): void {
    const all = below(this.#config, 'output')
    const given = [...(isMap(all) ? all.value : [])]
    for (const [name, item] of given) {
      // Filebeat reads the output that is a table. An output without options can be meant only if there is no other.
      if (!isMap(item) && (item.value !== null || given.length > 1)) {
        const reason = 'the output is not a table, so Filebeat ignores it'
        this.#report.replaced(item, `output ${name}`, reason, 'Write its options as a table, and convert again.')
        continue
      }
      const mapping = outputs.find((each) => each.name === name)
      const part = withDefaults(partOf(name, item), mapping ?? switched, this.#report)
      if (flagIn(part, 'enabled') === false) continue
      const origin = { file: part.file, line: part.line, subject: `output ${name}` }
      if (mapping === undefined) {
        this.#report.refused(part, 'output', refusedOutputs)
        const comments = [
          `GAP: the output \`${name}\` (${part.file}:${part.line}) has no counterpart. This sink discards its events.`,
        ]
        this.#sink(name, { type: 'blackhole', comments }, heads)
        continue
      }
      this.#report.options(part, mapping)
      const { component, steps } = mapping.build(part, this.#report, this.#choices)
      const sound = soundComponent('sink', component, origin, this.#draft.gaps)
      this.#sink(name, sound, this.#draft.append(heads, heads.length === 0 ? [] : steps, `${name}-form`, origin))
    }
  }

  #sink(name: string, component: Component, heads: readonly string[]): void {
    if (heads.length === 0) return
    const buffer = this.#buffer === undefined || component.type === 'blackhole' ? {} : { buffer: this.#buffer }
    this.#draft.add('sinks', name, { ...component, config: { ...component.config, ...buffer }, inputs: heads })
  }
}

/** The alias to which events go while the index life cycle is on. */
function aliasOf(lifeCycle: Tree | undefined): string | undefined {
  const alias = textOf(below(lifeCycle, 'rollover_alias'))
  return alias === '' || textOf(below(lifeCycle, 'enabled')) === 'false' ? undefined : alias
}

/** The refusal of a module whose logs no source reads, with the paths that the configuration sets for its file sets. */
function unreadModule(tree: Tree): Refusal {
  const sets = isMap(tree) ? [...tree.value].filter(([, set]) => isMap(set) && isEnabled(set)) : []
  const read = sets.flatMap(([name, set]) => {
    const paths = textsOf(below(set, 'var', 'paths'))
    return paths.length > 0 ? paths.map((path) => `\`${path}\``) : [`the defaults of \`${name}\``]
  })
  const names = read.length === 0 ? 'its defaults' : read.join(', ')
  return {
    name: 'modules',
    reason: `no source reads the logs of the module (${names}), and \`convert\` does not convert its pipelines`,
    nearest:
      'Add a `file` source with the paths of these logs, and parse the lines in a remap transform, such as with `parse_nginx_log` or `parse_syslog`.',
  }
}

/** Whether a condition or a format string reads the path of the file in `source`, where versions before 7 write it. */
function readsSource(tree: Tree): boolean {
  if (isList(tree)) return tree.value.some(readsSource)
  if (!isMap(tree)) return /%\{\[source\]/.test(textOf(tree) ?? '')
  return [...tree.value].some(
    ([name, item]) =>
      (['equals', 'contains', 'regexp'].includes(name) && textOf(below(item, 'source'))?.includes('/') === true) ||
      readsSource(item),
  )
}

/** Whether a tokenizer or an expression for lines contains the stream and the flag that container runtimes write before the text. */
function namesRuntime(tree: Tree): boolean {
  if (isList(tree)) return tree.value.some(namesRuntime)
  if (!isMap(tree)) return false
  const ofLines = ['tokenizer', 'include_lines', 'exclude_lines'].flatMap((name) => textsOf(below(tree, name)))
  const ofMessage = textsOf(below(tree, 'regexp', 'message'))
  return (
    [...ofLines, ...ofMessage].some((text) => /\bstd(?:out|err)\b|(?:^| |\\s\+?)[FP](?: |\\s)/.test(text)) ||
    [...tree.value.values()].some(namesRuntime)
  )
}

const filter = (text: string): Step => ({ type: 'filter', text })

/** Reads no pod, because the condition of a template has no counterpart. */
const unselected = ({ file, line }: Tree): Step => ({
  ...filter('false'),
  comments: [`GAP: the condition (${file}:${line}) has no counterpart. No event passes. Write the condition here.`],
})

/** The options of the default input of hints. */
const defaultsIn = (hints: Tree): readonly string[] => {
  const { tree } = partOf('hints', hints)
  return isMap(tree) ? [...tree.value.keys()].map(String).filter((name) => name.startsWith('default_config')) : []
}

/** Discovery of services or nodes has no counterpart. */
const ofPods = {
  how: 'the source reads pods',
  unless: /^(?!pod$)/,
  reason: 'Penstock discovers pods only',
  nearest: 'Leave the provider out, or select pods.',
} as const

/** The steps that add the metadata of pods, and keep those of one namespace if a provider names it. */
function providerSteps(tree: Tree, report: Report): readonly Step[] {
  const own = isMap(tree) ? { ...tree, value: without(without(tree.value, 'hints'), 'templates') } : tree
  const part = { ...partOf('autodiscover', own), name: 'autodiscover' }
  report.options(part, {
    options: {
      ...addKubernetes.options,
      type: '',
      namespace: '',
      scope: '',
      prefix: '',
      hints: '',
      templates: '',
      appenders: '',
    },
    itself: { ...addKubernetes.itself, resource: ofPods },
  })
  const namespace = textIn(part, 'namespace')
  return [
    { type: 'remap', text: podMetadata(part).join('\n') },
    ...(namespace === undefined ? [] : [filter(`.kubernetes.namespace == ${textLiteral(namespace)}`)]),
  ]
}

/** Fields that conditions of templates can read, and that Filebeat does not copy to the event under these names. */
const onlyDiscovered = /\.kubernetes\.(?:container\.(?:image|id|runtime)|annotations)\b/

/** The steps that add the metadata of pods and keep those that the conditions of templates choose. */
function chosenSteps(provider: Tree, metadata: readonly Step[], choices: readonly Step[]): readonly Step[] {
  if (!choices.some(({ text }) => onlyDiscovered.test(text))) return [...metadata, ...choices]
  const dots = flagOf(below(provider, 'annotations', 'dedot')) === false ? 'key' : 'replace(key, ".", "_")'
  const lines = [
    '%kubernetes = .kubernetes',
    'id = string(%orchestrator.container_id) ?? ""',
    '.kubernetes.container = merge(object(.kubernetes.container) ?? {}, {',
    '  "id": replace(id, r\'^.*://\', ""),',
    '  "runtime": replace(id, r\'://.*$\', ""),',
    '  "image": %orchestrator.container_image,',
    '})',
    `.kubernetes.annotations = map_keys(object(%orchestrator.pod_annotations) ?? {}) -> |key| { ${dots} }`,
  ]
  return [
    ...metadata,
    {
      type: 'remap',
      text: ['# The fields that conditions of templates read, until the next filter.', ...lines].join('\n'),
    },
    ...choices,
    { type: 'remap', text: '.kubernetes = del(%kubernetes)' },
  ]
}

/** Keeps events of pods that enable logs by annotation. The configuration decides about pods without the annotation. */
function chosenByPods(prefix: string, byDefault: boolean): Step {
  const annotation = `%orchestrator.pod_annotations.${textLiteral(`${prefix}.logs/enabled`)}`
  const own = `get(%orchestrator, ["pod_annotations", ${textLiteral(`${prefix}.logs.`)} + (string(%orchestrator.container_name) ?? "") + "/enabled"]) ?? null`
  return { type: 'filter', text: `own = ${own}\nchoice = own || ${annotation} || "${byDefault}"\nchoice == "true"` }
}

const without = <Item>(all: ReadonlyMap<string, Item>, name: string) =>
  new Map([...all].filter(([key]) => key !== name))

/** The input that hints start for a pod. */
function containers({ file, line }: Tree): Tree {
  const leaf = (value: string): Tree => ({ file, line, value })
  return {
    file,
    line,
    value: new Map([
      ['type', leaf('container')],
      ['paths', { file, line, value: [leaf('/var/log/containers/*.log')] }],
    ]),
  }
}

const ends: Ends = {
  source: { subject: 'inputs', reason: 'the configuration has no input', comment: 'the configuration has no input.' },
  sink: {
    subject: 'output',
    reason: 'the configuration has no known output',
    comment: 'the configuration has no output.',
  },
}
