// Warnings about unused results: literals and calls without effect, and variables that are never read.

import type { Block, Expression, If, Span, Target } from './ast.ts'
import type { Diagnostic } from './diagnostics.ts'

/** Functions called for their effect. */
const effects = new Set(['del', 'log', 'assert', 'assert_eq', 'set_semantic_meaning'])

export function unusedWarnings(program: readonly Expression[]): Diagnostic[] {
  const visitor = new Visitor()
  program.forEach((expression, index) => {
    visitor.visit(expression, index === program.length - 1)
  })
  return visitor.finish()
}

class Visitor {
  readonly #found: { span: Span; message: string }[] = []
  readonly #assigned = new Map<string, { span: Span; read: boolean }>()

  finish(): Diagnostic[] {
    for (const [name, { span, read }] of this.#assigned) {
      if (!read && !name.startsWith('_')) this.#found.push({ span, message: `unused variable \`${name}\`` })
    }
    return this.#found
      .sort((left, right) => left.span[0] - right.span[0])
      .map(({ span, message }) => ({
        severity: 'warning',
        code: 900,
        message,
        labels: [{ primary: true, span, message: 'help: use the result of this expression or remove it' }],
        notes: [],
      }))
  }

  visit(node: Expression, used: boolean): void {
    switch (node.node) {
      case 'literal':
      case 'regex':
      case 'timestamp':
        if (!used) this.#found.push({ span: node.span, message: 'unused literal' })
        break
      case 'variable':
        this.#read(node.name)
        break
      case 'query':
        if (typeof node.root !== 'string') this.visit(node.root, true)
        break
      case 'group':
        this.visit(node.inner, used)
        break
      case 'block':
        this.#block(node, used)
        break
      case 'array':
        for (const item of node.items) this.visit(item, used)
        break
      case 'object':
        if (!used) this.#found.push({ span: node.span, message: 'unused object' })
        for (const [, value] of node.fields) this.visit(value, true)
        break
      case 'if':
        this.#if(node, used)
        break
      case 'binary':
        this.visit(node.left, used)
        this.visit(node.right, true)
        break
      case 'not':
        this.visit(node.operand, used)
        break
      case 'assignment':
        if (node.merge) this.#readTarget(node.to)
        this.#assign(node.to)
        if (node.error !== undefined) this.#assign(node.error)
        this.visit(node.value, true)
        break
      case 'call': {
        for (const argument of node.arguments) this.visit(argument.value, true)
        if (node.closure !== undefined) {
          this.#block(node.closure.body, true)
        } else if (!used && !effects.has(node.name)) {
          this.#found.push({ span: node.span, message: `unused result for function call \`${node.name}\`` })
        }
        break
      }
      case 'abort':
        if (node.message !== undefined) this.visit(node.message, true)
        break
      case 'return':
        this.visit(node.value, true)
        break
    }
  }

  #block(node: Block, _used: boolean): void {
    node.body.forEach((expression, index) => {
      // The surrounding expression may use the value of a block, so its last expression counts as used.
      this.visit(expression, index === node.body.length - 1)
    })
  }

  #if(node: If, used: boolean): void {
    node.predicate.body.forEach((expression, index) => {
      this.visit(expression, index === node.predicate.body.length - 1)
    })
    this.#block(node.consequent, used)
    if (node.alternative?.node === 'if') this.#if(node.alternative, used)
    else if (node.alternative !== undefined) this.#block(node.alternative, used)
  }

  #read(name: string): void {
    const known = this.#assigned.get(name)
    if (known !== undefined) known.read = true
  }

  #readTarget(target: Target): void {
    if (target.target === 'variable') this.#read(target.name)
  }

  #assign(target: Target): void {
    if (target.target !== 'variable' || this.#assigned.has(target.name)) return
    if (target.segments.length > 0) return
    this.#assigned.set(target.name, { span: target.span, read: false })
  }
}
