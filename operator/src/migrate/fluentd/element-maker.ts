// Plugins in resources of operators as elements of Fluentd: tables and lists of tables are elements within, as far as Fluentd has such
// elements, and values from Secrets are variables.

import { below, isList, isMap, itemsOf, type Place, plain, type Tree, textOf } from '../loki/tree.ts'
import type { Element, Parameter } from './syntax.ts'

export interface Naming {
  /** The element that a table with this key is; undefined for an object in a parameter. */
  readonly elements: Readonly<Record<string, string>>
  /** The parameter for an option. */
  readonly parameter?: (key: string) => string
  /** The variable for the key of a Secret. */
  readonly secret: (reference: Tree) => string
  readonly gap: (place: Place, subject: string, reason: string, nearest: string) => void
}

/** Options of a plugin for certificates and keys. */
const certificates =
  /^(?:ca_file|ca_cert|ca_path|client_cert|client_key|cert|key|CAFile|clientCert|clientKey|tls_ca_cert_path|tls_client_cert_path|tls_private_key_path)$/

export class ElementMaker {
  readonly #naming: Naming

  constructor(naming: Naming) {
    this.#naming = naming
  }

  /** A plugin with its options. */
  plugin(name: string, type: string, options: Tree, id: string, argument = '**'): Element {
    const { parameters, children } = this.options(options)
    const own = [parameter(options, '@type', type), parameter(options, '@id', id)]
    return { ...element(name, options, argument), parameters: [...own, ...parameters], children }
  }

  options(options: Tree): { readonly parameters: Parameter[]; readonly children: Element[] } {
    const parameters: Parameter[] = []
    const children: Element[] = []
    const { elements, parameter: nameOf = (key) => key } = this.#naming
    for (const [key, item] of isMap(options) ? options.value : []) {
      const inner = Object.hasOwn(elements, key) ? elements[key] : undefined
      const tables = isList(item) ? item.value : [item]
      if (inner !== undefined && tables.length > 0 && tables.every(isMap)) {
        for (const table of tables) children.push(this.#inner(inner, table))
      } else if (key === 'multiline' && isList(item)) {
        for (const [index, format] of itemsOf(item).entries())
          parameters.push(parameter(format, `format${index + 1}`, textOf(format) ?? ''))
      } else parameters.push(parameter(item, nameOf(key), this.value(key, item)))
    }
    return { parameters, children }
  }

  #inner(name: string, table: Tree): Element {
    const { parameters, children } = this.options(table)
    const isTyped = name !== 'record' && name !== 'label' && name !== 'pattern'
    const renamed = parameters.map((each) => (isTyped && each.key === 'type' ? { ...each, key: '@type' } : each))
    const keys = renamed.find(({ key }) => name === 'buffer' && (key === 'tags' || key === 'tag'))
    return {
      ...element(name, table, keys?.value.replace(/[[\]"]/g, '') ?? ''),
      parameters: renamed.filter((each) => each !== keys),
      children,
    }
  }

  value(key: string, item: Tree): string {
    if (isList(item)) return JSON.stringify(item.value.map(plain))
    if (!isMap(item)) return textOf(item) ?? ''
    const literal = textOf(below(item, 'value'))
    if (literal !== undefined) return literal
    const reference = below(item, 'valueFrom', 'secretKeyRef')
    if (reference !== undefined) return this.#naming.secret(reference)
    const mounted = below(item, 'mountFrom', 'secretKeyRef')
    if (mounted === undefined) return JSON.stringify(plain(item))
    // The options for certificates and keys take the content of the file, too.
    if (certificates.test(key)) return this.#naming.secret(mounted)
    const path = `/etc/penstock-secrets/${textOf(below(mounted, 'name'))}/${textOf(below(mounted, 'key'))}`
    const reason = `the option is a file, and an Agent mounts no Secret at \`${path}\``
    this.#naming.gap(item, `${key}: mountFrom`, reason, 'Mount the Secret into the Agent, and correct the path.')
    return path
  }
}

export function element(
  name: string,
  { file, line }: Place,
  argument = '',
  parameters: readonly (readonly [string, string])[] = [],
): Element {
  return {
    file,
    line,
    name,
    argument,
    parameters: parameters.map(([key, value]) => ({ file, line, key, value })),
    children: [],
  }
}

export const parameter = ({ file, line }: Place, key: string, value: string): Parameter => ({ file, line, key, value })

/** The variable that stands for the key of a Secret. */
export const variableFor = (name: string, key: string) =>
  `SECRET_${name}_${key}`.toUpperCase().replace(/[^A-Z0-9]+/g, '_')
