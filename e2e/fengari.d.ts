// The parts of fengari, a Lua in JavaScript without types, that the tests use.
declare module 'fengari' {
  type State = { readonly '~lua': never }
  const fengari: {
    readonly lua: { lua_tostring(state: State, index: number): Uint8Array | null }
    readonly lauxlib: { luaL_newstate(): State; luaL_dostring(state: State, program: Uint8Array): boolean }
    readonly lualib: { luaL_openlibs(state: State): void }
    to_luastring(text: string): Uint8Array
    to_jsstring(text: Uint8Array): string
  }
  export default fengari
}
