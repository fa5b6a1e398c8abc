/** The part of undici that the HTTP client needs. The library has types for all of it together only. */
declare module 'undici/lib/dispatcher/pool.js' {
  import type { Pool } from 'undici'

  const pool: typeof Pool
  export default pool
}
